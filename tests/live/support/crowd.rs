//! A long queue of waiting jobs.

use std::collections::BTreeMap;

use miserly_api::client::Client;
use miserly_api::model::{Accepted, Phase, Submission};

use super::{Daemon, Draws, SOON, cpus, sh, until};

/// A long job on all processors of a daemon, and the jobs that wait behind it.
pub(crate) struct Crowd {
    /// The running job.
    pub(crate) first: i64,
    /// The waiting jobs, in the order of their submission.
    pub(crate) numbers: Vec<i64>,
    draws: Draws,
}

impl Crowd {
    /// Submits the job that takes all processors.
    pub(crate) fn new(daemon: &Daemon) -> Crowd {
        let all = u64::try_from(cpus().len()).expect("a number of processors");
        let first =
            daemon.submit(&Submission { cpus: all, no_opportunistic: true, ..sh("sleep 86400", 86_400.0) });
        until("the first one runs", SOON, || {
            matches!(daemon.job(first).phase, Phase::Running(_)).then_some(())
        });
        Crowd { first, numbers: vec![], draws: Draws::new(10) }
    }

    /// Submits another job, with some width and length.
    pub(crate) fn join(&mut self, client: &Client) -> Accepted {
        let most = u64::try_from(cpus().len()).expect("a number of processors");
        let job = Submission {
            cpus: 1 + self.draws.below(most),
            environment: environment(),
            ..sh("sleep 1", self.draws.choice(&[60.0, 300.0, 600.0, 3600.0]))
        };
        let mut accepted = client.submit(&job).expect("it is accepted").jobs;
        let accepted = accepted.pop().expect("one job");
        assert!(!accepted.started, "job {} runs", accepted.number);
        self.numbers.push(accepted.number);
        accepted
    }

    /// Ends the running job.
    pub(crate) fn leave(&self, daemon: &Daemon) {
        daemon.client().cancel(self.first, false).expect("it can be cancelled");
        daemon.wait(self.first);
    }
}

/// Returns an environment of a usual size, about two kilobytes.
fn environment() -> BTreeMap<String, String> {
    let variable = |number: usize| (format!("VARIABLE_{number}"), "/some/folder/of/a/user".repeat(2));
    let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    (0..30).map(variable).chain([path]).collect()
}
