//! The promises that a change of a job moves, in words.

use jiff::Timestamp;
use miserly_api::model::{MovedPromise, Moves, Window};

use miserly_scene::counted;

/// The most other jobs with a moved promise that a question before a change names.
pub const MOVES_NAMED: usize = 3;

/// Returns the promises that a change of a job moves, in words.
///
/// A line is for the job, one for the number of others, and one for each of the first `named` of these. `text` writes the latest
/// instant of something.
pub fn moved_promises(
    moves: &Moves,
    now: Timestamp,
    named: usize,
    text: impl Fn(Timestamp) -> String,
) -> Vec<String> {
    let started = moves.before.map(|before| before.start).filter(|start| *start <= now);
    let window = |window: Option<Window>| match window {
        None => "no promise".to_owned(),
        Some(Window { start, end }) if Some(start) == started => {
            format!("has started, ends by {}", text(end))
        }
        Some(Window { start, end }) if start <= now => format!("starts at once, ends by {}", text(end)),
        Some(Window { start, end }) => format!("starts by {}, ends by {}", text(start), text(end)),
    };
    let mut lines = vec![if moves.before == moves.after {
        format!("job {}: {}, as before", moves.job, window(moves.after))
    } else {
        format!("job {}: {}; before: {}", moves.job, window(moves.after), window(moves.before))
    }];
    if let Some((first, more)) = moves.over.split_first() {
        let shown = more.iter().take(named).fold(first.to_string(), |shown, job| format!("{shown}, {job}"));
        let rest = more.len().saturating_sub(named);
        let others = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let (who, why) = if more.is_empty() {
            ("job", "ends without a run: it needs")
        } else {
            ("jobs", "end without a run: they need")
        };
        lines.push(format!("{who} {shown}{others} {why} the success of job {}", moves.job));
    }
    if moves.count == 0 {
        lines.push("no other promise moves".to_owned());
        return lines;
    }
    lines.push(format!("other promises that move: {}", moves.count));
    lines.extend(moves.moved.iter().take(named).map(|MovedPromise { job, before, after }| {
        let after = after.map_or_else(|| "no promise".to_owned(), &text);
        format!("  job {job}: from {} to {after}", text(*before))
    }));
    let rest = moves.count.saturating_sub(named as u64);
    if rest > 0 {
        lines.push(format!("  and {}", counted(rest, "job")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn window(start: i64, end: i64) -> Window {
        Window { start: at(start), end: at(end) }
    }

    #[track_caller]
    fn check(moves: &Moves, expect: &[&str]) {
        assert_eq!(moved_promises(moves, at(10), 1, |at| at.as_second().to_string()), expect);
    }

    #[test]
    fn the_window_of_the_job_and_the_first_others() {
        let one = |job, after: Option<i64>| MovedPromise { job, before: at(30), after: after.map(at) };
        let mut moves =
            Moves { job: 7, before: Some(window(5, 20)), after: Some(window(5, 25)), ..Moves::default() };
        check(
            &moves,
            &["job 7: has started, ends by 25; before: has started, ends by 20", "no other promise moves"],
        );
        moves.moved = vec![one(8, None), one(9, Some(40))];
        moves.count = 2;
        moves.after = None;
        check(
            &moves,
            &[
                "job 7: no promise; before: has started, ends by 20",
                "other promises that move: 2",
                "  job 8: from 30 to no promise",
                "  and 1 job",
            ],
        );
        let at_once = Moves { job: 7, after: Some(window(10, 20)), over: vec![9, 12], ..Moves::default() };
        check(
            &at_once,
            &[
                "job 7: starts at once, ends by 20; before: no promise",
                "jobs 9, 12 end without a run: they need the success of job 7",
                "no other promise moves",
            ],
        );
        let same =
            Moves { job: 7, before: Some(window(11, 20)), after: Some(window(11, 20)), ..Moves::default() };
        check(&same, &["job 7: starts by 11, ends by 20, as before", "no other promise moves"]);
    }
}
