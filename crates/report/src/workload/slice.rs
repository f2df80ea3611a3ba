//! The windows of a log as text and as JSON.

use miserly_workload::LogDates;
use miserly_workload::slice::{Slice, SliceOptions, Window};
use serde_json::{Value, json};

use super::text::duration;
use crate::numbers::count;

/// Returns a table of windows. Times are dates, if the log has them, else durations since its begin.
pub fn slice_text(windows: &[Window], dates: Option<&LogDates>) -> String {
    let time = |second: i64| {
        let date = dates.and_then(|dates| dates.minute(second));
        date.unwrap_or_else(|| duration(second as f64))
    };
    let mut text = format!(
        "{:>6}  {:16}  {:16}  {:>9}  {:>6}  {:>10}  {:>7}  {:>7}\n",
        "window", "from", "to", "jobs", "load", "saturation", "running", "waiting"
    );
    for window in windows {
        let Window { number, begin, end, jobs, load, saturation, running, waiting } = *window;
        let saturation = saturation.map_or_else(|| "-".to_owned(), |part| format!("{part:.3}"));
        text += &format!(
            "{number:>6}  {:16}  {:16}  {:>9}  {load:>6.3}  {saturation:>10}  {:>7}  {:>7}\n",
            time(begin),
            time(end),
            count(jobs),
            count(running),
            count(waiting)
        );
    }
    text
}

/// Returns the windows as JSON, with the one that was written, if any. Times are in seconds of the log.
pub fn slice_json(
    name: &str,
    options: &SliceOptions,
    windows: &[Window],
    written: Option<(&Window, &Slice)>,
) -> Value {
    let written = written.map(|(window, slice)| {
        json!({
            "window": window.number, "jobs": slice.jobs, "running": slice.running, "waiting": slice.waiting,
            "unknown": slice.unknown,
        })
    });
    json!({
        "name": name,
        "procs": options.procs.get(),
        "length": options.length,
        "warmup": options.measured_from(),
        "cold": options.cold,
        "windows": windows.iter().map(window_json).collect::<Vec<_>>(),
        "written": written,
    })
}

fn window_json(window: &Window) -> Value {
    let Window { number, begin, end, jobs, load, saturation, running, waiting } = *window;
    json!({
        "window": number, "begin": begin, "end": end, "jobs": jobs, "load": load, "saturation": saturation,
        "running": running, "waiting": waiting,
    })
}
