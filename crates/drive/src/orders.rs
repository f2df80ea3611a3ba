//! What is asked of Slurm: commands of `scontrol`.

use std::collections::BTreeSet;
use std::fmt;

use miserly_core::Span;
use serde::Serialize;

/// The priority of a placed job: it goes before all others of the reservation.
const PLACED: u64 = 4_000_000_000;

/// A command for Slurm. Each sets a state, so it may be repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Reserves the nodes, so that Slurm starts only jobs that are placed.
    Reserve {
        /// The name of the reservation.
        reservation: String,
        /// The nodes.
        nodes: Vec<String>,
        /// The user that owns it, by number.
        owner: u32,
        /// The time after which it ends if it is not renewed, in minutes.
        minutes: i64,
    },
    /// Keeps the reservation for so many minutes more.
    Renew {
        /// The name of the reservation.
        reservation: String,
        /// The minutes from now.
        minutes: i64,
    },
    /// Changes the nodes of the reservation.
    Span {
        /// The name of the reservation.
        reservation: String,
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Lets the jobs of users into the reservation.
    Admit {
        /// The name of the reservation.
        reservation: String,
        /// The users, by number.
        users: BTreeSet<u32>,
    },
    /// Keeps further jobs of users out of the reservation.
    Dismiss {
        /// The name of the reservation.
        reservation: String,
        /// The users, by number.
        users: BTreeSet<u32>,
    },
    /// Lets a job start on these nodes.
    Place {
        /// The job.
        job: String,
        /// The name of the reservation.
        reservation: String,
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Takes a placed job back that did not start.
    TakeBack {
        /// The job.
        job: String,
        /// The nodes that its user asked for.
        nodes: Vec<String>,
        /// The least and the most nodes, if its user set a limit.
        count: Option<(u64, u64)>,
    },
    /// Tells the user of a job something.
    Tell {
        /// The job.
        job: String,
        /// The comment.
        text: String,
    },
    /// Ends the reservation, so that Slurm schedules by itself.
    HandBack {
        /// The name of the reservation.
        reservation: String,
    },
}

impl Order {
    /// Returns the commands of `scontrol`.
    pub fn commands(&self) -> Vec<String> {
        let update = |what: String| vec![format!("update {what}")];
        match self {
            Order::Reserve { reservation, nodes, owner, minutes } => vec![format!(
                "create reservation ReservationName={reservation} Nodes={} StartTime=now EndTime=now+{minutes}minutes \
                 Users={owner} Flags=IGNORE_JOBS,FLEX,NO_HOLD_JOBS_AFTER,OVERLAP",
                nodes.join(",")
            )],
            Order::Renew { reservation, minutes } => {
                update(format!("ReservationName={reservation} EndTime=now+{minutes}minutes"))
            }
            Order::Span { reservation, nodes } => {
                update(format!("ReservationName={reservation} Nodes={}", nodes.join(",")))
            }
            Order::Admit { reservation, users } => {
                update(format!("ReservationName={reservation} Users+={}", list(users)))
            }
            Order::Dismiss { reservation, users } => {
                update(format!("ReservationName={reservation} Users-={}", list(users)))
            }
            Order::Place { job, reservation, nodes } => update(format!(
                "JobId={job} ReservationName={reservation} ReqNodeList={} NumNodes={}-{} Priority={PLACED}",
                nodes.join(","),
                nodes.len(),
                nodes.len()
            )),
            Order::TakeBack { job, nodes, count } => {
                let count =
                    count.map_or_else(String::new, |(least, most)| format!(" NumNodes={least}-{most}"));
                vec![
                    format!("update JobId={job} ReservationName= ReqNodeList={}{count}", nodes.join(",")),
                    format!("release {job}"),
                ]
            }
            Order::Tell { job, text } => {
                update(format!("JobId={job} Comment=\"{}\"", text.replace('"', "'")))
            }
            Order::HandBack { reservation } => update(format!("ReservationName={reservation} EndTime=now+1")),
        }
    }
}

fn list(users: &BTreeSet<u32>) -> String {
    users.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            &self
                .commands()
                .iter()
                .map(|command| format!("scontrol {command}"))
                .collect::<Vec<_>>()
                .join("; "),
        )
    }
}

/// Returns a span in whole minutes, at least one.
pub(crate) fn minutes(span: Span) -> i64 {
    (span.secs() / 60).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_commands_of_scontrol() {
        let reservation = "miserly".to_owned();
        let nodes = ["a", "b"].map(str::to_owned).to_vec();
        let place =
            Order::Place { job: "7_3".into(), reservation: reservation.clone(), nodes: nodes.clone() };
        assert_eq!(
            place.to_string(),
            "scontrol update JobId=7_3 ReservationName=miserly ReqNodeList=a,b NumNodes=2-2 Priority=4000000000"
        );
        let back = Order::TakeBack { job: "7_3".into(), nodes: vec![], count: Some((2, 3)) };
        assert_eq!(back.commands()[0], "update JobId=7_3 ReservationName= ReqNodeList= NumNodes=2-3");
        let tell = Order::Tell { job: "1".into(), text: "\"by\" noon".into() };
        assert_eq!(tell.commands(), ["update JobId=1 Comment=\"'by' noon\""]);
        let admit = Order::Admit { reservation, users: [3, 1].into() };
        assert_eq!(admit.commands(), ["update ReservationName=miserly Users+=1,3"]);
    }
}
