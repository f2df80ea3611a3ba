//! The time that a policy takes for many jobs on many hosts.
//!
//! ```sh
//! cargo run --release -p miserly-sim --example hosts -- --hosts 10000 --jobs 1000000 --policy easy
//! ```
//!
//! The machine has hosts of 64 processors and 256 GB, and the jobs use nine tenths of it: see
//! [`workload`]. The last line is a checksum of the schedule. A faster policy must not change it.

mod workload;

use std::convert::Infallible;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use miserly_core::{EventOrder, Span};
use miserly_policies::PolicySpec;
use miserly_sim::{Finished, Metrics, Observer, Simulation};

use self::workload::Workload;

const USAGE: &str = "hosts [--hosts N] [--jobs N] [--load PERCENT] [--seed N] [--policy POLICY]";

fn main() -> ExitCode {
    match Run::parsed(std::env::args().skip(1)).and_then(|run| run.measure()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The settings of the command line.
struct Run {
    workload: Workload,
    policy: PolicySpec,
}

impl Run {
    fn parsed(mut args: impl Iterator<Item = String>) -> Result<Run, String> {
        let mut workload = Workload { hosts: 1000, jobs: 100_000, load: 90, seed: 1 };
        let mut policy = "easy".to_owned();
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} has no value\n{USAGE}"))?;
            match name.as_str() {
                "--hosts" => workload.hosts = count(&name, &value)?,
                "--jobs" => workload.jobs = count(&name, &value)?,
                "--load" => workload.load = count(&name, &value)?,
                "--seed" => workload.seed = count(&name, &value)?,
                "--policy" => policy = value,
                _ => return Err(format!("{name} is not known\n{USAGE}")),
            }
        }
        let policy = policy.parse().map_err(|error| format!("--policy {policy}: {error}"))?;
        Ok(Run { workload, policy })
    }

    #[allow(clippy::disallowed_methods)] // A run is measured, not driven, by the wall clock.
    fn measure(&self) -> Result<(), String> {
        let machine = self.workload.machine();
        let policy = self.policy.build(&machine, 1).map_err(|error| error.to_string())?;
        let mut metrics = Metrics::new(machine.capacity().cpus_count().get(), Span::ZERO);
        let mut checksum = Checksum::default();
        let mut simulation = Simulation::new(machine, policy, EventOrder::Batched);
        let begun = Instant::now();
        let played = simulation
            .run(&mut self.workload.jobs().map(Ok::<_, Infallible>), &mut [&mut metrics, &mut checksum]);
        played.map_err(|error| error.to_string())?;
        let seconds = begun.elapsed().as_secs_f64();
        let (mean, longest) = metrics.queue_length();
        println!("{} jobs on {} hosts, {}", metrics.simulated(), self.workload.hosts, self.policy);
        println!("{seconds:.1} s, {:.0} jobs/s", metrics.simulated() as f64 / seconds);
        println!("{:.2} of the machine used", metrics.utilization().unwrap_or(0.0));
        println!("{:.0} jobs waited on the average, {longest} at most", mean.unwrap_or(0.0));
        println!("schedule {:016x}", checksum.0);
        Ok(())
    }
}

fn count<N: TryFrom<u32>>(name: &str, value: &str) -> Result<N, String> {
    let number = value.parse::<u32>().ok().filter(|number| *number > 0);
    let number = number.and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| format!("{name} {value}: it has to be a number from 1 to {}", u32::MAX))
}

/// A checksum of the jobs and their starts, in the order of the ends.
///
/// It is Fowler, Noll and Vo's hash (FNV-1a), word by word.
struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum(0xcbf2_9ce4_8422_2325)
    }
}

impl Observer for Checksum {
    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        for word in [job.request.number, job.start.ticks(), job.end.ticks()] {
            self.0 = (self.0 ^ word.cast_unsigned()).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}
