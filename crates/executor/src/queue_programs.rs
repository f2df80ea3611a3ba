//! The programs of queues: the setting of the operator, and the programs of an attempt that follow from it.

use std::time::Duration;

use miserly_launch::{AttemptSpec, JobUser, QueueProgram, QueuePrograms};
use nix::unistd::{Uid, User};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::gpus::indexes;
use crate::launch::{GPU_INDEXES, VISIBLE_GPUS};
use crate::{LaunchFailure, LaunchFailureKind, LaunchRequest};

/// The part of the cleanup time that is for the processes of the job, before the epilog begins.
const RESERVE: Duration = Duration::from_secs(1);
/// The folders in which programs are looked up by the programs of queues.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The programs of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRules {
    /// The prolog.
    pub prolog: Option<QueueProgram>,
    /// The epilog.
    pub epilog: Option<QueueProgram>,
    /// How jobs are written out and restarted, if the policy writes their memory out.
    pub checkpoint: Option<CheckpointRules>,
}

/// How the jobs of a queue are written out and restarted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRules {
    /// The program that writes a job out.
    pub command: QueueProgram,
    /// The program that continues a job as its user, by its absolute path, and its arguments.
    pub restart: Vec<String>,
}

impl QueueRules {
    /// Returns whether the queue has no program.
    pub fn is_empty(&self) -> bool {
        *self == QueueRules::default()
    }

    /// Returns the longest time limit of an epilog, for a cleanup time.
    pub fn longest_epilog(cleanup: Duration) -> Duration {
        cleanup.saturating_sub(RESERVE)
    }

    /// Returns the programs of an attempt. `user` is the user of the job, if it is not that of this process.
    ///
    /// The epilog ends before the resources of the job are promised to others. A job may have been planned with a shorter
    /// cleanup time than the present one.
    pub(crate) fn programs(&self, request: &LaunchRequest, user: Option<&JobUser>) -> Option<QueuePrograms> {
        if self.is_empty() {
            return None;
        }
        let longest = QueueRules::longest_epilog(request.cleanup).max(RESERVE);
        let epilog = self.epilog.clone();
        let epilog = epilog.map(|epilog| QueueProgram { limit: epilog.limit.min(longest), ..epilog });
        let checkpoint = self.checkpoint.as_ref().map(|checkpoint| checkpoint.command.clone());
        Some(QueuePrograms {
            env: environment(request, user),
            prolog: self.prolog.clone(),
            epilog,
            checkpoint,
        })
    }

    /// Replaces the command of an attempt by the program that continues the job where it was written out.
    ///
    /// # Errors
    /// The queue has no such program.
    pub(crate) fn restart(
        rules: Option<&QueueRules>,
        spec: AttemptSpec,
    ) -> Result<AttemptSpec, LaunchFailure> {
        let Some(checkpoint) = rules.and_then(|rules| rules.checkpoint.as_ref()) else {
            let problem = "its queue has no program that restarts it (checkpoint in the configuration)";
            return Err(LaunchFailure::new(LaunchFailureKind::Final, &problem));
        };
        let argv = checkpoint.restart.iter().map(Into::into).collect();
        Ok(AttemptSpec { argv, script: None, ..spec })
    }
}

/// Returns the environment of the programs. It has numbers and the names of user and queue, and no text of the submission.
fn environment(
    request: &LaunchRequest,
    user: Option<&JobUser>,
) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let (uid, name) = user.map_or_else(own_user, |user| (user.uid, user.name.clone()));
    let mut variables = vec![("PATH", PATH.to_owned())];
    let mut set = |names: &[&'static str], value: String| {
        variables.extend(names.iter().map(|name| (*name, value.clone())));
    };
    set(&["MISERLY_JOB_ID", "SLURM_JOB_ID"], request.attempt.job.to_string());
    set(&["MISERLY_ATTEMPT"], request.ordinal.to_string());
    set(&["MISERLY_QUEUE", "SLURM_JOB_PARTITION"], request.queue.clone());
    set(&["MISERLY_CPUS"], request.submission.cpus.to_string());
    set(&["MISERLY_USER", "SLURM_JOB_USER"], name);
    set(&["MISERLY_UID", "SLURM_JOB_UID"], uid.to_string());
    if let Some((first, index)) = request.array {
        set(&["MISERLY_ARRAY_ID"], first.to_string());
        set(&["MISERLY_ARRAY_INDEX", "MISERLY_ARRAY_TASK_ID"], index.to_string());
    }
    if let Some(gpus) = &request.gpus {
        // The programs of a queue see all GPUs.
        set(&GPU_INDEXES, indexes(gpus));
        set(&VISIBLE_GPUS, indexes(gpus));
    }
    variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// Returns number and name of the user of this process.
fn own_user() -> (u32, String) {
    let uid = geteuid().as_raw();
    let name = User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
    (uid, name.unwrap_or_else(|| uid.to_string()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::JobGroups;
    use crate::launch::tests::request;

    fn rules(limit: u64) -> QueueRules {
        let program = |limit| QueueProgram { path: "/bin/true".into(), argv: vec!["true".into()], limit };
        let command = program(Duration::MAX);
        let checkpoint = Some(CheckpointRules { command, restart: vec!["/bin/restart".into(), "-v".into()] });
        QueueRules { prolog: None, epilog: Some(program(Duration::from_secs(limit))), checkpoint }
    }

    #[test]
    fn an_epilog_fits_into_the_cleanup_time_of_the_job() {
        for (limit, cleanup, expect) in [(4, 5, 4), (4, 65, 4), (60, 5, 4), (60, 0, 1)] {
            let request = LaunchRequest { cleanup: Duration::from_secs(cleanup), ..request() };
            let programs = rules(limit).programs(&request, None).unwrap();
            assert_eq!(programs.epilog.unwrap().limit, Duration::from_secs(expect));
        }
        assert_eq!(QueueRules::default().programs(&request(), None), None);
    }

    #[test]
    fn a_restart_replaces_the_command_and_nothing_else() {
        let mut request = request();
        (request.submission.command, request.submission.script) = (vec!["own".into()], Some("#!/x".into()));
        let spec = request.spec(Path::new("/s"), &JobGroups::none());
        let rules = rules(4);
        let restarted = QueueRules::restart(Some(&rules), spec.clone()).unwrap();
        assert_eq!(
            (restarted.argv.as_slice(), &restarted.script),
            (&["/bin/restart".into(), "-v".into()][..], &None)
        );
        assert_eq!(AttemptSpec { argv: spec.argv.clone(), script: spec.script.clone(), ..restarted }, spec);
        assert!(rules.programs(&request, None).unwrap().checkpoint.is_some());
        for rules in [None, Some(&QueueRules::default())] {
            let failure = QueueRules::restart(rules, spec.clone()).unwrap_err();
            assert_eq!(failure.kind, LaunchFailureKind::Final);
        }
    }

    #[test]
    fn the_environment_names_the_job_and_has_no_text_of_it() {
        let mut request = LaunchRequest { gpus: Some(vec![1, 3]), array: Some((4, 2)), ..request() };
        request.submission.environment.insert("LD_PRELOAD".into(), "/evil".into());
        request.submission.name = Some("$(evil)".into());
        let (name, groups) = ("ann".to_owned(), vec![]);
        let user = JobUser { name, uid: 1001, gid: 1001, groups, no_new_privileges: true, pam: None };
        let env = rules(4).programs(&request, Some(&user)).unwrap().env;
        let value = |name: &str| env.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        for (name, expect) in [
            ("MISERLY_JOB_ID", "1"),
            ("MISERLY_ATTEMPT", "1"),
            ("MISERLY_QUEUE", "queue"),
            ("MISERLY_CPUS", "1"),
            ("MISERLY_USER", "ann"),
            ("SLURM_JOB_UID", "1001"),
            ("MISERLY_ARRAY_INDEX", "2"),
            ("MISERLY_ARRAY_TASK_ID", "2"),
            ("CUDA_VISIBLE_DEVICES", "1,3"),
        ] {
            assert_eq!(value(name), Some(expect.into()), "{name}");
        }
        assert!(
            !env.iter().any(|(name, value)| name == "LD_PRELOAD" || value.to_string_lossy().contains("evil"))
        );
        let own = rules(4).programs(&request, None).unwrap().env;
        assert!(own.contains(&("MISERLY_UID".into(), geteuid().as_raw().to_string().into())));
    }
}
