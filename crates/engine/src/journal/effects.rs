//! The stored form of a list of effects: plans and promises that follow each other are one element.
//!
//! When a job ends early, a round may move the promises of all jobs behind it.

use miserly_core::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::line::EffectLine;

/// An element of the stored list. A run has for each job its number and an instant, as differences
/// from those before.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Element {
    /// Promises: the latest start.
    Promises {
        promises: Vec<i64>,
    },
    /// Plans, each followed by the promise of the planned start.
    Reserved {
        reserved: Vec<i64>,
    },
    One(EffectLine),
}

/// The job and the ticks before a run and within it.
type Last = (i64, i64);

#[allow(clippy::ptr_arg, reason = "the signature that serde needs")]
pub(super) fn serialize<S: Serializer>(effects: &Vec<EffectLine>, to: S) -> Result<S::Ok, S::Error> {
    let (mut elements, mut last) = (vec![], (0, 0));
    let mut rest = &effects[..];
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (*first, rest.first()) {
            (EffectLine::Planned { job, start }, Some(EffectLine::Promised { job: same, latest }))
                if *same == job && *latest == start =>
            {
                rest = &rest[1..];
                if !matches!(elements.last(), Some(Element::Reserved { .. })) {
                    elements.push(Element::Reserved { reserved: vec![] });
                    last = (0, 0);
                }
                extend(&mut elements, &mut last, (job, start.ticks()));
            }
            (EffectLine::Promised { job, latest }, _) => {
                if !matches!(elements.last(), Some(Element::Promises { .. })) {
                    elements.push(Element::Promises { promises: vec![] });
                    last = (0, 0);
                }
                extend(&mut elements, &mut last, (job, latest.ticks()));
            }
            (one, _) => elements.push(Element::One(one)),
        }
    }
    elements.serialize(to)
}

/// Adds a job to the run at the end.
fn extend(elements: &mut [Element], last: &mut Last, next: Last) {
    if let Some(Element::Promises { promises: run } | Element::Reserved { reserved: run }) =
        elements.last_mut()
    {
        run.extend([next.0.wrapping_sub(last.0), next.1.wrapping_sub(last.1)]);
        *last = next;
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<EffectLine>, D::Error> {
    let mut effects = vec![];
    for element in Vec::<Element>::deserialize(from)? {
        match element {
            Element::One(effect) => effects.push(effect),
            Element::Promises { promises } => {
                effects.extend(pairs(&promises).map(|(job, latest)| EffectLine::Promised { job, latest }));
            }
            Element::Reserved { reserved } => effects.extend(pairs(&reserved).flat_map(|(job, start)| {
                [EffectLine::Planned { job, start }, EffectLine::Promised { job, latest: start }]
            })),
        }
    }
    Ok(effects)
}

/// Returns the jobs and instants of a run.
fn pairs(run: &[i64]) -> impl Iterator<Item = (i64, Time)> {
    run.chunks_exact(2).scan((0_i64, 0_i64), |last, pair| {
        *last = (last.0.wrapping_add(pair[0]), last.1.wrapping_add(pair[1]));
        Some((last.0, Time::from_ticks(last.1)))
    })
}

#[cfg(test)]
mod tests {
    use miserly_core::Time;

    use crate::{EffectLine, JournalLine, RoundLine};

    #[test]
    fn effects_are_read_as_they_were_written() {
        let promised = |job, latest| EffectLine::Promised { job, latest: Time::from_ticks(latest) };
        let planned = |job, start| EffectLine::Planned { job, start: Time::from_ticks(start) };
        let effects = vec![
            promised(7, 500),
            EffectLine::Suspended { job: 9 },
            promised(8, i64::MAX),
            promised(3, -20),
            EffectLine::Resized { job: 1, procs: 4 },
            planned(4, 90),
            promised(4, 90),
            planned(5, 95),
            promised(5, 95),
            planned(6, 99),
            promised(6, 98),
            promised(5, 94),
        ];
        let line = JournalLine::Round(Box::new(RoundLine { effects, ..RoundLine::default() }));
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.contains(r#"{"promises":[7,500]}"#), "{text}");
        assert!(text.contains(r#"{"reserved":[4,90,1,5]}"#), "{text}");
        assert_eq!(serde_json::from_str::<JournalLine>(&text).unwrap(), line);
    }

    #[test]
    fn the_effects_of_earlier_versions_are_read() {
        let stored =
            r#"{"line":"round","at":1,"wall":2,"effects":[{"effect":"promised","job":3,"latest":4}]}"#;
        let JournalLine::Round(line) = serde_json::from_str(stored).unwrap() else { panic!() };
        assert_eq!(line.effects, [EffectLine::Promised { job: 3, latest: Time::from_ticks(4) }]);
    }
}
