//! The requests to Slurm: commands of `scontrol`.

use std::collections::BTreeSet;
use std::fmt;

use miserly_core::Span;
use miserly_slurm::DRIVER_FLAGS;
use serde::Serialize;

use crate::CommentField;

/// The priority of a placed job: it goes before all others of the reservation.
pub(crate) const PLACED: u64 = 4_000_000_000;

/// A command for Slurm. Each sets a state, so it may be repeated. A requeue is given again only while the job runs.
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
    /// Moves the end of the reservation.
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
        /// The node that Slurm fills last, if it is not the last one in their order.
        #[serde(skip_serializing_if = "Option::is_none")]
        last: Option<String>,
        /// The nodes that it must not have. With a last node these are all others.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        without: Vec<String>,
    },
    /// Takes a placed job back that did not start.
    TakeBack {
        /// The job.
        job: String,
        /// The nodes that its user asked for.
        nodes: Vec<String>,
        /// The nodes that its user excluded.
        without: Vec<String>,
        /// The least and the most nodes.
        count: (u64, u64),
        /// Whether it gets the priority again that it had.
        releases: bool,
    },
    /// Stops a job that runs, so that it waits again.
    Requeue {
        /// The job.
        job: String,
    },
    /// Suspends a job that runs. It keeps its memory.
    Suspend {
        /// The job.
        job: String,
    },
    /// Resumes a suspended job.
    Resume {
        /// The job.
        job: String,
    },
    /// Ends the time for which Slurm keeps a requeued job from starting.
    Ready {
        /// The job.
        job: String,
    },
    /// Writes a comment of a job.
    Comment {
        /// The job.
        job: String,
        /// The waiting tasks of its array, in Slurm's notation, if they share the comment.
        #[serde(skip_serializing_if = "Option::is_none")]
        tasks: Option<String>,
        /// The comment that is written.
        field: CommentField,
        /// Its text.
        text: String,
    },
    /// Ends the reservation, so that Slurm schedules by itself.
    HandBack {
        /// The name of the reservation.
        reservation: String,
    },
}

impl Order {
    /// Returns the commands of `scontrol`, each as its words.
    pub fn commands(&self) -> Vec<Vec<String>> {
        let commands = match self {
            Order::Requeue { job } => vec![
                // Its user may have forbidden it since the job began.
                update_job(job, ["Requeue=1".into()]),
                // Without the second word it would begin a job anew that has just ended.
                vec!["requeue".into(), "Incomplete".into(), job.clone()],
            ],
            Order::TakeBack { job, nodes, without, count: (least, most), releases } => {
                let update = update_job(
                    job,
                    [
                        "ReservationName=".into(),
                        format!("ReqNodeList={}", nodes.join(",")),
                        format!("ExcNodeList={}", without.join(",")),
                        format!("NumNodes={least}-{most}"),
                    ],
                );
                let release = releases.then(|| vec!["release".into(), job.clone()]);
                [update].into_iter().chain(release).collect()
            }
            _ => vec![self.command()],
        };
        commands.iter().map(|words| words.iter().map(|word| plain(word)).collect()).collect()
    }

    /// Returns the command of an order that is one.
    fn command(&self) -> Vec<String> {
        match self {
            Order::Reserve { reservation, nodes, owner, minutes } => {
                create_reservation(reservation, nodes, *owner, *minutes)
            }
            Order::Renew { reservation, minutes } => {
                update_reservation(reservation, format!("EndTime=now+{minutes}minutes"))
            }
            Order::Span { reservation, nodes } => {
                update_reservation(reservation, format!("Nodes={}", nodes.join(",")))
            }
            Order::Admit { reservation, users } => {
                update_reservation(reservation, format!("Users+={}", list(users)))
            }
            Order::Dismiss { reservation, users } => {
                update_reservation(reservation, format!("Users-={}", list(users)))
            }
            Order::HandBack { reservation } => update_reservation(reservation, "EndTime=now+1".into()),
            Order::Place { job, reservation, nodes, last, without } => {
                place_job(job, reservation, (nodes, last.as_ref()), without)
            }
            Order::Suspend { job } => vec!["suspend".into(), job.clone()],
            Order::Resume { job } => vec!["resume".into(), job.clone()],
            Order::Ready { job } => update_job(job, ["StartTime=now".into()]),
            Order::Comment { job, tasks, field, text } => {
                update_job(tasks.as_ref().unwrap_or(job), [format!("{}={text}", field.key())])
            }
            // These are several commands.
            Order::TakeBack { .. } | Order::Requeue { .. } => vec![],
        }
    }
}

fn create_reservation(name: &str, nodes: &[String], owner: u32, minutes: i64) -> Vec<String> {
    vec![
        "create".into(),
        "reservation".into(),
        format!("ReservationName={name}"),
        format!("Nodes={}", nodes.join(",")),
        "StartTime=now".into(),
        format!("EndTime=now+{minutes}minutes"),
        format!("Users={owner}"),
        format!("Flags={}", DRIVER_FLAGS.join(",").to_uppercase()),
    ]
}

fn update_reservation(name: &str, what: String) -> Vec<String> {
    vec!["update".into(), format!("ReservationName={name}"), what]
}

fn update_job<const N: usize>(job: &str, what: [String; N]) -> Vec<String> {
    ["update".to_owned(), format!("JobId={job}")].into_iter().chain(what).collect()
}

/// Returns the command that lets a job start on these nodes. Slurm fills those that it must have (`ReqNodeList`) in their order, and then
/// the one that is left.
fn place_job(
    job: &str,
    reservation: &str,
    (nodes, last): (&[String], Option<&String>),
    without: &[String],
) -> Vec<String> {
    let first: Vec<&str> = nodes.iter().filter(|node| Some(*node) != last).map(String::as_str).collect();
    update_job(
        job,
        [
            format!("ReservationName={reservation}"),
            format!("ReqNodeList={}", first.join(",")),
            format!("ExcNodeList={}", without.join(",")),
            format!("NumNodes={count}-{count}", count = nodes.len()),
            format!("Priority={PLACED}"),
        ],
    )
}

/// Returns a word without control characters and quotation marks, which `scontrol` or a terminal might take for more than text.
fn plain(word: &str) -> String {
    word.chars()
        .filter(|letter| !letter.is_control())
        .map(|letter| if letter == '"' { '\'' } else { letter })
        .collect()
}

fn list(users: &BTreeSet<u32>) -> String {
    users.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// As a user types them.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, command) in self.commands().iter().enumerate() {
            f.write_str(if at == 0 { "scontrol" } else { "; scontrol" })?;
            for word in command {
                if word.contains([' ', '\'', '|', ';', '&', '$', '`', '\\', '*', '(', ')', '<', '>', '[']) {
                    write!(f, " \"{}\"", word.replace(['$', '`', '\\'], "_"))?;
                } else {
                    write!(f, " {word}")?;
                }
            }
        }
        Ok(())
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
    fn a_job_that_is_taken_back_has_the_request_of_its_user() {
        let back = |releases| {
            let without = vec!["c".to_owned()];
            Order::TakeBack { job: "7_3".into(), nodes: vec![], without, count: (2, 3), releases }
        };
        let update = "scontrol update JobId=7_3 ReservationName= ReqNodeList= ExcNodeList=c NumNodes=2-3";
        assert_eq!(back(false).to_string(), update);
        assert_eq!(back(true).to_string(), format!("{update}; scontrol release 7_3"));
    }

    #[test]
    fn orders_are_commands_of_scontrol() {
        let reservation = "miserly".to_owned();
        let place = |last: Option<&str>, without: &[&str]| {
            let [nodes, without] =
                [&["a", "b"], without].map(|list| list.iter().map(|&name| name.to_owned()).collect());
            let (job, last) = ("7_3".to_owned(), last.map(str::to_owned));
            Order::Place { job, reservation: reservation.clone(), nodes, last, without }.to_string()
        };
        let start = "scontrol update JobId=7_3 ReservationName=miserly";
        assert_eq!(
            place(None, &[]),
            format!("{start} ReqNodeList=a,b ExcNodeList= NumNodes=2-2 Priority=4000000000")
        );
        assert_eq!(
            place(Some("a"), &["c", "d"]),
            format!("{start} ReqNodeList=b ExcNodeList=c,d NumNodes=2-2 Priority=4000000000")
        );
        let comment = Order::Comment {
            job: "1".into(),
            tasks: None,
            field: CommentField::Comment,
            text: "\"by\"\u{15} no\non".into(),
        };
        assert_eq!(comment.commands(), [["update", "JobId=1", "Comment='by' noon"]]);
        assert_eq!(comment.to_string(), "scontrol update JobId=1 \"Comment='by' noon\"");
        let field = CommentField::AdminComment;
        let all =
            Order::Comment { job: "8_1".into(), tasks: Some("8_[1-3]".into()), field, text: "by".into() };
        assert_eq!(all.commands(), [["update", "JobId=8_[1-3]", "AdminComment=by"]]);
        let requeue = Order::Requeue { job: "7".into() };
        assert_eq!(requeue.to_string(), "scontrol update JobId=7 Requeue=1; scontrol requeue Incomplete 7");
        let admit = Order::Admit { reservation, users: [3, 1].into() };
        assert_eq!(admit.commands(), [["update", "ReservationName=miserly", "Users+=1,3"]]);
    }
}
