//! A campaign of mixed faults: every promise that was ever given is held against what the jobs wrote down.
//!
//! Each round submits and changes jobs while one fault happens. `MISERLY_ROUNDS` is the number of rounds, and `MISERLY_SEED` repeats
//! them. By default there are few: one seed of `miserly-world` has the same faults without processes.

mod checks;

mod clocks;

mod configuration;

mod fault;

mod load;

mod restore;

mod runs;

mod small_disk;

use std::io::Write;
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::model::Status;

use crate::support::{Daemon, Draws, now, rounds};

use self::checks::check_all;
use self::clocks::{Clocks, Shared};
use self::fault::{Fault, happen};
use self::load::{Load, Told};

/// A daemon, its faults, and what its clients were told.
struct Campaign {
    daemon: Daemon,
    clocks: Shared,
    draws: Draws,
    told: Told,
    seed: u64,
    round: u64,
    /// The instant at which each fault began.
    faults: Vec<(Timestamp, Fault)>,
}

impl Campaign {
    fn new(daemon: Daemon, seed: u64) -> Campaign {
        let clocks = Arc::new(RwLock::new(Clocks::new(daemon.faults())));
        Campaign {
            daemon,
            clocks,
            draws: Draws::new(seed),
            told: Told::default(),
            seed,
            round: 0,
            faults: vec![],
        }
    }

    /// Plays rounds with faults of these kinds, and checks the outcome.
    fn play(mut self, rounds: u64, faults: &[Fault]) {
        let began = now();
        for round in 0..rounds {
            self.round = round;
            let fault = self.draws.choice(faults);
            self.round_with(fault);
            assert!(!self.daemon.is_dead(), "round {round}: the daemon ended by itself after {fault:?}");
            if round % 10 == 9 {
                self.finish();
            }
            if round % 100 == 99 {
                self.say(&format!("{} of {rounds} rounds, {} s", round + 1, began.elapsed().as_secs()));
            }
        }
        self.finish();
        self.summarise();
        check_all(&mut self.daemon, &self.clocks, &self.told);
    }

    /// Prints the judgements of promises and what became of forecasts.
    fn summarise(&self) {
        let Status { promises, kept, late, lost, withdrawn, open, forecasts, .. } =
            self.daemon.client().status().expect("a status");
        let is_kill = |fault: &Fault| {
            matches!(fault, Fault::KillDaemon | Fault::KillShim | Fault::KillBoth | Fault::ReplaceShim)
        };
        let kills = self.faults.iter().filter(|(_, fault)| is_kill(fault)).count();
        self.say(&format!(
            "{kills} kills among {} faults: {promises} promises given = {kept} kept + {late} late + {lost} lost \
             + {withdrawn} withdrawn + {open} open; {forecasts:?}",
            self.faults.len()
        ));
    }

    /// Prints a line. Not with a macro, whose output a test keeps to itself.
    fn say(&self, text: &str) {
        let _ = std::io::stderr().write_all(format!("campaign {}: {text}\n", self.seed).as_bytes());
    }

    /// Plays a round: a thread submits and changes jobs, and meanwhile the fault happens.
    fn round_with(&mut self, fault: Fault) {
        let load = Load {
            client: self.daemon.client(),
            folder: self.daemon.path(""),
            clocks: self.clocks.clone(),
            draws: Draws::new(self.draws.bits()),
            fault,
            name: format!("{}-{}", self.seed, self.round),
        };
        let load = thread::spawn(move || load.run());
        thread::sleep(Duration::from_micros(self.draws.below(80_000)));
        self.faults.push((Timestamp::now(), fault));
        happen(&mut self.daemon, &self.clocks, &mut self.draws, fault);
        self.told.extend(load.join().expect("submissions"));
    }

    /// Waits for the end of all jobs, also of those that stayed held.
    #[track_caller]
    fn finish(&mut self) {
        self.told.cancelled.extend(self.daemon.release_held());
        self.daemon.wait_for_all();
    }
}

impl Drop for Campaign {
    fn drop(&mut self) {
        if thread::panicking() {
            if let Some(to) = std::env::var_os("MISERLY_KEEP") {
                let to = std::path::Path::new(&to).join(self.seed.to_string());
                self.daemon.kill();
                let _ = std::process::Command::new("cp").arg("-r").arg(self.daemon.path("")).arg(to).status();
            }
            for (at, fault) in &self.faults {
                eprintln!("{at} {fault:?}");
            }
            eprintln!("round {}: repeat it with MISERLY_SEED={}", self.round, self.seed);
        }
    }
}

/// Returns the seed: the one that the user selected, or this one.
fn seed(default: u64) -> u64 {
    let set = std::env::var("MISERLY_SEED").ok();
    set.map_or(default, |text| text.parse().expect("MISERLY_SEED is a number"))
}

#[test]
fn every_promise_is_kept_or_its_breach_is_on_record_whatever_happens() {
    let seed = seed(16);
    let mut draws = Draws::new(seed);
    let daemon = Daemon::with_faults(&configuration::any(&mut draws));
    Campaign::new(daemon, seed).play(rounds(), &Fault::ALL);
}
