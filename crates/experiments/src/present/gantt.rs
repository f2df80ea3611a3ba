//! The jobs of a recorded window on the processors of the hosts.

use miserly_report::chart::{Body, ColourBy, GanttJob, Part, QueueStep};
use miserly_run::{HostsDoc, SettingsDoc};

use crate::present::matrix;
use crate::run_result::{GanttRow, Schedule, StayRow};

/// Returns the jobs of the recorded window.
pub(crate) fn body(schedule: &Schedule, settings: &SettingsDoc) -> Body {
    if let Some(recorded) = &schedule.matrix {
        return matrix::over_time(recorded);
    }
    let [from, to] = schedule.window.map(|second| second as f64);
    Body::Gantt {
        by: ColourBy::Reason,
        queue: schedule.queue.iter().copied().map(QueueStep::from).collect(),
        tops: [0; 3],
        procs: settings.procs,
        hosts: named(&settings.machine.hosts),
        slots: 1,
        from,
        to,
        jobs: schedule.jobs.iter().flat_map(stays).collect(),
    }
}

/// Returns the note on the layout of slots.
pub(crate) fn note(schedule: &Schedule) -> Option<String> {
    schedule.matrix.as_ref().map(|_| SLOTS.to_owned())
}

/// How a matrix is laid out.
const SLOTS: &str = "The slots alternate on the processors. A job is drawn in every slot in which it runs: its own, and \
                     others in which no other job needs its processors.";

/// Returns the first processor of each host and its name; none for a machine of one.
fn named(machine: &[HostsDoc]) -> Vec<(u32, String)> {
    let hosts = hosts(machine);
    if hosts.len() > 1 { hosts.into_iter().map(|(name, low)| (low, name)).collect() } else { vec![] }
}

/// The hosts, each with its first processor.
fn hosts(machine: &[HostsDoc]) -> Vec<(String, u32)> {
    let (mut hosts, mut low) = (Vec::new(), 0_u32);
    for kind in machine {
        let cpus = u32::try_from(kind.cpus).unwrap_or_default();
        let names = kind.count.map_or_else(
            || vec![kind.name.clone()],
            |count| (1..=count).map(|number| format!("{}{number}", kind.name)).collect(),
        );
        for name in names {
            hosts.push((name, low));
            low = low.saturating_add(cpus);
        }
    }
    hosts
}

/// Returns the parts of a job of the window: the whole job, or its work and its transfers in each allocation.
fn stays(row: &GanttRow) -> Vec<GanttJob> {
    let part = |start, end, pes: &[(u32, u32)]| GanttJob {
        number: row.job,
        pes: pes.to_vec(),
        procs: row.procs,
        submit: row.submit,
        start,
        end,
        user: row.user.map(|user| user.to_string()),
        reason: row.reason.clone().into_owned(),
        promised: row.promised,
        killed: row.killed,
        ..GanttJob::default()
    };
    if row.stays.is_empty() {
        return vec![part(row.start, row.end, &row.pes)];
    }
    let stay = |stay: &StayRow| apart(part(stay.start, stay.end, &stay.pes), stay.worked);
    row.stays.iter().flat_map(stay).collect()
}

/// Returns an allocation as its transfers and its work.
fn apart(stay: GanttJob, worked: Option<[f64; 2]>) -> Vec<GanttJob> {
    let Some([from, to]) = worked else { return vec![stay] };
    let transfer = |start, end| GanttJob { start, end, part: Part::Swap, ..stay.clone() };
    let work = GanttJob { start: from, end: to, ..stay.clone() };
    let pieces = [transfer(stay.start, from), work, transfer(to, stay.end)];
    pieces.into_iter().filter(|piece| piece.start < piece.end).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn a_job_is_drawn_where_it_was_when() {
        let mut row = json!({
            "job": 7, "user": null, "submit": 1.0, "start": 5.0, "end": 20.0, "reason": "reserved",
            "pes": [[0, 1], [4, 5]],
        });
        let parts = |row: &Value| -> Vec<_> {
            let jobs = stays(&from_value(row.clone()).unwrap()).into_iter();
            jobs.map(|job| (job.start, job.end, job.pes)).collect()
        };
        assert_eq!(parts(&row), [(5.0, 20.0, vec![(0, 1), (4, 5)])]);
        // A quantum on other processors before, and the stay in which it ended.
        row["stays"] = json!([
            { "start": 1.0, "end": 2.0, "pes": [[8, 11]] },
            { "start": 5.0, "end": 20.0, "pes": [[0, 1], [4, 5]] },
        ]);
        let quantum = (1.0, 2.0, vec![(8, 11)]);
        assert_eq!(parts(&row), [quantum, (5.0, 20.0, vec![(0, 1), (4, 5)])]);
    }

    #[test]
    fn transfers_are_drawn_for_themselves() {
        let row = json!({
            "job": 7, "user": null, "submit": 0.0, "start": 0.0, "end": 30.0, "reason": "reserved", "pes": [[0, 1]],
            "stays": [
                { "start": 0.0, "end": 9.0, "pes": [[0, 1]], "worked": [0.0, 5.0] },
                { "start": 20.0, "end": 30.0, "pes": [[0, 1]], "worked": [24.0, 30.0] },
            ],
        });
        let parts: Vec<_> =
            stays(&from_value(row).unwrap()).into_iter().map(|job| (job.start, job.end, job.part)).collect();
        let (work, transfer) = (Part::Run, Part::Swap);
        assert_eq!(
            parts,
            [(0.0, 5.0, work), (5.0, 9.0, transfer), (20.0, 24.0, transfer), (24.0, 30.0, work)]
        );
    }
}
