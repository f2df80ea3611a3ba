//! `miserly slurm hand-back`: Slurm schedules by itself again.

use std::path::Path;
use std::thread::park_timeout;
use std::time::Duration;

use miserly_drive::{Drive, HandedBack, Order};
use miserly_run::Stopwatch;
use miserly_slurm::Slurm;

use super::signals::{end_at_signal, is_signalled};
use crate::args::SlurmHandBackArgs;
use crate::commands::live::counted;
use crate::failure::INTERRUPTED;
use crate::output::print;

/// The time between two looks whether a driver is there.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn hand_back(args: &SlurmHandBackArgs) -> anyhow::Result<()> {
    let slurm = args.cluster.slurm();
    if let Some((patience, state)) = args.when_gone.zip(args.state.as_deref()) {
        return hand_back_when_gone(&slurm, state, patience);
    }
    print(&text(&Drive::hand_back(&slurm, args.reservation.as_deref(), args.state.as_deref())?))
}

/// Hands the nodes back each time the driver of a state has been gone for some time, until a signal.
fn hand_back_when_gone(slurm: &Slurm, state: &Path, patience: Duration) -> anyhow::Result<()> {
    end_at_signal();
    // The time since which the driver is gone, if its nodes may be reserved.
    let mut gone: Option<Stopwatch> = None;
    let mut is_done = false;
    while !is_signalled() {
        if !Drive::is_gone(state)? {
            (gone, is_done) = (None, false);
        } else if !is_done && gone.get_or_insert_with(Stopwatch::start).elapsed() >= patience {
            gone = None;
            match Drive::hand_back_if_gone(slurm, state) {
                // Jobs that stay suspended are resumed later.
                Ok(handed_back) => {
                    is_done = handed_back.as_ref().is_some_and(|handed_back| handed_back.kept.is_empty());
                    print(&handed_back.as_ref().map_or_else(String::new, text))?;
                }
                Err(error) => note!("warning: {error}; the next try is in {} s", patience.as_secs()),
            }
        }
        park_timeout(LOOK);
    }
    std::process::exit(INTERRUPTED);
}

/// Returns what was handed back, in words.
fn text(handed_back: &HandedBack) -> String {
    let count = |is: fn(&&Order) -> bool| handed_back.orders.iter().filter(is).count() as u64;
    let ended = count(|order| matches!(order, Order::HandBack { .. })) > 0;
    let placed = || counted(count(|order| matches!(order, Order::TakeBack { .. })), "job");
    let mut text = if ended {
        format!("Slurm schedules by itself; {} placed and not started\n", placed())
    } else if handed_back.kept.is_empty() {
        format!("there is no reservation {}: Slurm schedules by itself\n", handed_back.reservation)
    } else {
        let kept = handed_back.kept.join(",");
        format!("Slurm schedules by itself on all nodes but {kept}; {} placed and not started\n", placed())
    };
    if !handed_back.has_ended {
        text += "the driver ends at its next step; call this again then\n";
    }
    let resumed = count(|order| matches!(order, Order::Resume { .. }));
    if resumed > 0 {
        text += &format!("{} resumed\n", counted(resumed, "suspended job"));
    }
    if !handed_back.stay_suspended.is_empty() {
        text += &format!(
            "still suspended, because others use their processors: {}; call this again when these are free\n",
            handed_back.stay_suspended.join(" ")
        );
    }
    text
}
