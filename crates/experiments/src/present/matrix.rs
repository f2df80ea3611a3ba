//! The matrix of a gang scheduler over a recorded window: as it is at an instant, and laid out over time.

use miserly_report::chart::{Body, ColourBy, GanttJob, MatrixJob, MatrixPlace, Part};

use crate::recording::PLACES;
use crate::run_result::{MatrixJobRow, MatrixRows, PlaceRow};

/// The matrix of the window, slots by processors.
pub(crate) fn body(recorded: &MatrixRows) -> Body {
    let &MatrixRows { procs, from, to, ref jobs, ref places, .. } = recorded;
    let (jobs, places) = (jobs.iter().map(job).collect(), places.iter().map(place).collect());
    Body::Matrix { procs, from, to, jobs, places }
}

/// Returns the note on a recorded matrix that is cut.
pub(crate) fn note(recorded: &MatrixRows) -> Option<String> {
    recorded.cut.then(|| format!("The record ends before the window: it is limited to {PLACES} placements."))
}

/// The same as a Gantt chart: the jobs in the slots in which they run.
pub(super) fn over_time(recorded: &MatrixRows) -> Body {
    let &MatrixRows { procs, from, to, ref jobs, ref places, .. } = recorded;
    let slots = places.iter().map(|place| place.slot + 1).max().unwrap_or(1);
    let drawn = places.iter().filter_map(|place| {
        let job = job(jobs.get(place.of)?);
        let first = place.slot.saturating_mul(procs);
        Some(GanttJob {
            number: job.number,
            pes: place.pes.iter().map(|(low, high)| (first + low, first + high)).collect(),
            submit: job.submit,
            start: place.from,
            end: place.to,
            user: job.user,
            part: if place.own { Part::Run } else { Part::Alternate },
            note: Some(if place.own { OWN } else { OTHER }.to_owned()),
            ..GanttJob::default()
        })
    });
    Body::Gantt {
        by: ColourBy::Slot,
        queue: vec![],
        tops: [0; 3],
        procs,
        hosts: vec![],
        slots,
        from,
        to,
        jobs: drawn.collect(),
    }
}

/// The names of the two kinds of places.
const OWN: &str = "a job's own slot";
const OTHER: &str = "another slot";

fn job(row: &MatrixJobRow) -> MatrixJob {
    MatrixJob { number: row.job, submit: row.submit, user: row.user.map(|user| user.to_string()) }
}

fn place(row: &PlaceRow) -> MatrixPlace {
    let &PlaceRow { of, slot, own, from, to, ref pes } = row;
    MatrixPlace { job: of, slot, own, from, to, pes: pes.clone() }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kept_matrix_is_read_back() {
        let place = |of: usize, slot: u32, own: bool, from: f64| json!({ "of": of, "slot": slot, "own": own, "from": from, "to": 9.0, "pes": [[0, 1], [4, 4]] });
        let kept = json!({
            "procs": 8, "from": 0.0, "to": 10.0, "cut": false,
            "jobs": [{ "job": 7, "user": 3, "submit": 0.5 }, { "job": 8, "user": null, "submit": 1.0 }],
            "places": [place(0, 0, true, 1.0), place(1, 1, true, 1.0), place(0, 1, false, 2.0)],
        });
        let recorded = MatrixRows::deserialize(&kept).unwrap();
        assert_eq!((recorded.procs, recorded.jobs.len()), (8, 2));
        assert_eq!(job(&recorded.jobs[0]), MatrixJob { number: 7, submit: 0.5, user: Some("3".into()) });
        assert_eq!(
            (recorded.places[2].slot, recorded.places[2].own, recorded.places[2].from),
            (1, false, 2.0)
        );
        let Body::Gantt { jobs, slots, .. } = over_time(&recorded) else { panic!("a schedule") };
        let parts: Vec<_> = jobs.iter().map(|job| (job.number, job.pes[0], job.part)).collect();
        assert_eq!(slots, 2);
        assert_eq!(parts, [(7, (0, 1), Part::Run), (8, (8, 9), Part::Run), (7, (8, 9), Part::Alternate)]);
        assert!(MatrixRows::deserialize(&json!({ "procs": 8 })).is_err());
    }
}
