//! Jobs, as `squeue` shows them.

use serde::Serialize;

use super::values::{Amount, Limit, amount, limit, parts, present};
use crate::live_limits::limit_of_reason;
use crate::{SlurmError, hosts};

/// The separator of the columns of `squeue`. The name of a job may contain it, and is last.
pub(super) const SEPARATOR: char = '|';

/// The columns of `squeue`, as [`Job::parse`] reads them.
pub(super) const COLUMNS: &str = "%i|%A|%F|%K|%P|%T|%U|%C|%D|%m|%l|%V|%S|%e|%Q|%r|%a|%q|%v|%b|%N|%E|%j";

/// The state of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It waits.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It was stopped, and holds its nodes but not its processors.
    Suspended,
    /// It starts or ends: another state of Slurm, in lower case. It holds its nodes.
    Other(String),
}

impl JobState {
    pub(super) fn parse(word: &str) -> JobState {
        match word {
            "PENDING" => JobState::Pending,
            "RUNNING" => JobState::Running,
            "SUSPENDED" => JobState::Suspended,
            other => JobState::Other(other.to_lowercase()),
        }
    }

    /// Returns the word for it.
    pub fn as_str(&self) -> &str {
        match self {
            JobState::Pending => "pending",
            JobState::Running => "running",
            JobState::Suspended => "suspended",
            JobState::Other(word) => word,
        }
    }
}

/// A job that has not ended. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Job {
    /// The name that it keeps: its number, or those of its array and its task, such as `17_3`.
    pub id: String,
    /// The number. Waiting tasks of an array share one.
    pub number: u64,
    /// The number of its array, and its place there.
    pub array: Option<(u64, String)>,
    /// The name.
    pub name: String,
    /// The partitions in which it may run.
    pub partitions: Vec<String>,
    /// The state.
    pub state: JobState,
    /// The user, by number.
    pub user: u32,
    /// The account.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The processors.
    pub cpus: u64,
    /// The number of nodes.
    pub nodes: u64,
    /// The memory that it needs.
    pub memory: Option<Amount>,
    /// Generic resources for each node, as Slurm writes them.
    pub gres: Option<String>,
    /// The time limit.
    pub limit: Limit,
    /// The submission.
    pub submitted: i64,
    /// The start; of a waiting job, the one that Slurm expects.
    pub start: Option<i64>,
    /// The end by its time limit.
    pub end: Option<i64>,
    /// The priority. 0: it is held.
    pub priority: u64,
    /// Why it waits, in Slurm's word.
    pub reason: Option<String>,
    /// The reservation that it uses.
    pub reservation: Option<String>,
    /// The nodes that it has.
    pub on: Vec<String>,
    /// The jobs for which it waits, as Slurm writes it.
    pub after: Option<String>,
}

impl Job {
    /// Returns the job of a line of `squeue` with [`COLUMNS`].
    pub(super) fn parse(line: &str) -> Result<Job, SlurmError> {
        let columns = COLUMNS.split(SEPARATOR).count();
        let mut values: Vec<&str> = line.splitn(columns, SEPARATOR).collect();
        // The name is as its user wrote it.
        if let Some((_, others)) = values.split_last_mut() {
            for value in others {
                *value = value.trim();
            }
        }
        let unreadable = |problem: &str| SlurmError::Unreadable {
            program: "squeue".to_owned(),
            problem: problem.to_owned(),
            line: line.chars().take(200).collect(),
        };
        let [
            id,
            number,
            array,
            place,
            partitions,
            state,
            user,
            cpus,
            nodes,
            memory,
            time,
            submitted,
            start,
            end,
            priority,
            reason,
            account,
            qos,
            reservation,
            gres,
            on,
            after,
            name,
        ] = values[..]
        else {
            return Err(unreadable("too few columns"));
        };
        let natural = |text: &str, what: &str| text.parse::<u64>().map_err(|_| unreadable(what));
        let number = natural(number, "no job number")?;
        let array = array.parse().ok().filter(|_| present(place).is_some());
        let instant = |text: &str| text.parse::<i64>().ok();
        Ok(Job {
            id: present(id).ok_or_else(|| unreadable("no job"))?.to_owned(),
            number,
            array: array.map(|array| (array, place.to_owned())),
            name: name.to_owned(),
            partitions: parts(Some(partitions)),
            state: JobState::parse(state),
            user: user.parse().map_err(|_| unreadable("no user"))?,
            account: present(account).map(str::to_owned),
            qos: present(qos).map(str::to_owned),
            cpus: natural(cpus, "no number of processors")?,
            nodes: natural(nodes, "no number of nodes")?,
            memory: amount(memory),
            gres: present(gres).map(str::to_owned),
            limit: limit(time).ok_or_else(|| unreadable("no time limit"))?,
            submitted: instant(submitted).ok_or_else(|| unreadable("no submission"))?,
            start: instant(start),
            end: instant(end),
            priority: natural(priority, "no priority")?,
            reason: present(reason).map(str::to_owned),
            reservation: present(reservation).map(str::to_owned),
            on: hosts(present(on).unwrap_or_default()).map_err(|_| unreadable("no list of hosts"))?,
            after: present(after).map(str::to_owned),
        })
    }

    /// Returns whether a user means it by this: its name, its number, or that of its array.
    pub fn is_called(&self, name: &str) -> bool {
        let array = self.array.as_ref().map(|(array, _)| *array);
        self.id == name || name.parse().is_ok_and(|number| number == self.number || Some(number) == array)
    }

    /// Returns the place of its name among others.
    pub fn order(&self) -> (u64, u64) {
        let number = |text: &str| text.parse().unwrap_or(0);
        let of_task = self.id.split_once('_').map(|(array, task)| (number(array), number(task)));
        of_task.unwrap_or((self.id.parse().unwrap_or(self.number), 0))
    }

    /// Returns whether it waits for nothing else than nodes.
    pub fn waits_for_nodes(&self) -> bool {
        let is_free = !self.is_held() && self.reservation.is_none();
        self.state == JobState::Pending && is_free && self.names_nodes_as_reason()
    }

    /// Returns whether Slurm's reason for its wait is that nodes are in use or out of service, or that there is none.
    pub fn names_nodes_as_reason(&self) -> bool {
        // Slurm writes some reasons with underscores, and further words may follow.
        let reason = self.reason.as_deref().unwrap_or_default().replace('_', " ");
        matches!(reason.as_str(), "" | "Priority" | "Resources" | "Cleaning")
            || reason.starts_with("ReqNodeNotAvail")
            || reason.starts_with("Nodes required for job are DOWN")
    }

    /// Returns whether it may have a forecast: it waits for nodes, or for the end of jobs that count for a limit.
    pub fn may_have_forecast(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        let waits_for_limit =
            self.state == JobState::Pending && !self.is_held() && self.reservation.is_none();
        self.waits_for_nodes() || waits_for_limit && limit_of_reason(reason).is_some()
    }

    /// Returns whether it waits for its release.
    pub fn is_held(&self) -> bool {
        self.state == JobState::Pending && self.priority == 0
    }
}
