//! Events as text, in the format of server-sent events.

use axum::body::Bytes;
use miserly_api::model::{ForecastsEvent, JobsEvent};
use serde::Serialize;

/// The comment that shows that the daemon is alive.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// Returns the event of all unfinished jobs.
pub(super) fn snapshot(event: &JobsEvent) -> Bytes {
    text("snapshot", Some(event.journal), event)
}

/// Returns the event of changed jobs.
pub(super) fn change(event: &JobsEvent) -> Bytes {
    text("change", Some(event.journal), event)
}

/// Returns the event of new forecasts. It has no number: a client that connects again gets them with the jobs.
pub(super) fn forecasts(event: &ForecastsEvent) -> Bytes {
    text("forecasts", None, event)
}

fn text(name: &str, id: Option<i64>, data: &impl Serialize) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    // JSON has no line ends, and these types always have a JSON form.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\n{id}data: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_its_name_its_number_and_one_line_of_data() {
        let event = JobsEvent { journal: 7, jobs: vec![], gone: vec![] };
        assert_eq!(change(&event), "event: change\nid: 7\ndata: {\"journal\":7,\"jobs\":[]}\n\n");
        let event = JobsEvent { gone: vec![3], ..event };
        assert_eq!(
            change(&event),
            "event: change\nid: 7\ndata: {\"journal\":7,\"jobs\":[],\"gone\":[3]}\n\n"
        );
        let none = ForecastsEvent { forecasts: vec![] };
        assert_eq!(forecasts(&none), "event: forecasts\ndata: {\"forecasts\":[]}\n\n");
    }
}
