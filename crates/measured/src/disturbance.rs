//! The load of other programs, measured before each run.

use std::fs;
use std::thread;
use std::time::Duration;

/// How long is measured, while the measurement itself does nothing. A tick of the kernel's counters is 10 ms.
const LONG: Duration = Duration::from_millis(100);

/// The load of other programs at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Disturbance {
    /// Share of the time of all processors that other programs use, 0 to 1.
    pub(crate) others: f64,
    /// Share that the hypervisor withholds, 0 to 1.
    pub(crate) steal: f64,
    /// The load average of the last minute. It includes earlier runs of the measurement.
    pub(crate) load: f64,
}

impl Disturbance {
    /// Measures for 0.1 s.
    pub(crate) fn measure() -> Disturbance {
        let before = Counters::read();
        thread::sleep(LONG);
        let (others, steal) = Counters::read().shares_since(before);
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
        Disturbance { others, steal, load }
    }
}

impl Disturbance {
    /// Returns the figures in words.
    pub(crate) fn text(self) -> String {
        let Disturbance { others, steal, load } = self;
        let percent = |share: f64| 100.0 * share;
        format!(
            "other programs use {:.0} % of the processors, {:.0} % is withheld, load average {load:.2}",
            percent(others),
            percent(steal)
        )
    }
}

/// The counters of all processors, in ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    busy: u64,
    idle: u64,
    steal: u64,
}

impl Counters {
    fn read() -> Counters {
        Counters::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(stat: &str) -> Counters {
        let numbers = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let numbers: Vec<u64> = numbers.map_while(|word| word.parse().ok()).collect();
        let sum = |fields: &[usize]| fields.iter().filter_map(|field| numbers.get(*field)).sum();
        Counters { busy: sum(&[0, 1, 2, 5, 6]), idle: sum(&[3, 4]), steal: sum(&[7]) }
    }

    /// Returns the shares of busy and of withheld time since `before`.
    fn shares_since(self, before: Counters) -> (f64, f64) {
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let (busy, idle) = (since(self.busy, before.busy), since(self.idle, before.idle));
        let steal = since(self.steal, before.steal);
        let all = (busy + idle + steal).max(1.0);
        (busy / all, steal / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_time() {
        let before = Counters::parse("cpu  100 10 20 500 5 1 2 7 0 0\ncpu0 1 1 1 1\n");
        let now = Counters::parse("cpu  130 10 30 540 5 1 2 17 3 0\n");
        assert_eq!((before.busy, before.idle, before.steal), (133, 505, 7));
        let (others, steal) = now.shares_since(before);
        assert!((others - 40.0 / 90.0).abs() < 1e-12 && (steal - 10.0 / 90.0).abs() < 1e-12);
        assert_eq!(Counters::parse("").shares_since(before), (0.0, 0.0));
    }

    #[test]
    fn the_machine_at_hand_has_a_load() {
        let found = Disturbance::measure();
        assert!((0.0..=1.0).contains(&found.others) && found.load >= 0.0, "{found:?}");
    }
}
