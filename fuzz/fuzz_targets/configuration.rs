//! Any text as a daemon's configuration: refused with a line of the text, or one whose sums hold at every instant.

#![no_main]

use libfuzzer_sys::fuzz_target;
use miserly_core::{Kind, Time};
use miserly_live::config::{ConfigError, Configuration, Machine};

/// The seconds of a week, and a step that meets every minute sooner or later.
const WEEK: i64 = 7 * 86_400;
const STEP: usize = 37 * 60;

fuzz_target!(|text: &str| {
    let machine = Machine::new((0..16).collect(), 1 << 26);
    let configuration = match Configuration::parse("fuzz.toml", text, &machine) {
        Ok(configuration) => configuration,
        Err(ConfigError::File { line, problem, .. }) => {
            assert!(line <= 1 + text.matches('\n').count() && !problem.is_empty());
            return;
        }
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(!configuration.queues.is_empty());
    let pool = configuration.pool.calendar(Time::ZERO);
    let queues: Vec<_> = configuration.queues.iter().map(|queue| queue.pool.calendar(Time::ZERO)).collect();
    for second in (0..WEEK).step_by(STEP) {
        let at = Time::from_secs(second).unwrap();
        for kind in [Kind::Cpus, Kind::Memory] {
            let sum: u64 = queues.iter().map(|queue| queue.at(at).get(kind)).sum();
            assert!(sum <= pool.at(at).get(kind));
        }
        assert!(pool.at(at).cpus_count().get() <= 16 && pool.at(at).get(Kind::Memory) <= 1 << 26);
    }
    assert_eq!(configuration.cpus.len() as u64, configuration.pool.most().cpus_count().get());
});
