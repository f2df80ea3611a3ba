//! Jobs that wait in a long queue.

use std::collections::BTreeMap;

use miserly_api::client::Client;
use miserly_api::model::{Accepted, Phase, Submission};

use super::{Daemon, Draws, SOON, cpus, sh, until};

/// A job that has all processors of a daemon for long, and those that wait behind it.
pub(crate) struct Crowd {
    /// The job that runs.
    pub(crate) first: i64,
    /// The jobs that wait, in the order in which they came.
    pub(crate) numbers: Vec<i64>,
    draws: Draws,
}

impl Crowd {
    /// Has all processors taken.
    pub(crate) fn new(daemon: &Daemon) -> Crowd {
        let all = u64::try_from(cpus().len()).expect("a number of processors");
        let first =
            daemon.submit(&Submission { cpus: all, no_opportunistic: true, ..sh("sleep 86400", 86_400.0) });
        until("the first one runs", SOON, || {
            matches!(daemon.job(first).phase, Phase::Running(_)).then_some(())
        });
        Crowd { first, numbers: vec![], draws: Draws::new(10) }
    }

    /// One more comes, of some width and length.
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

    /// The one that runs ends.
    pub(crate) fn leave(&self, daemon: &Daemon) {
        daemon.client().cancel(self.first, false).expect("it can be cancelled");
        daemon.wait(self.first);
    }
}

/// An environment as large as people's are: some two kilobytes.
fn environment() -> BTreeMap<String, String> {
    let variable = |number: usize| (format!("VARIABLE_{number}"), "/some/folder/of/a/user".repeat(2));
    let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    (0..30).map(variable).chain([path]).collect()
}
