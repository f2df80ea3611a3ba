//! A replay from each checkpoint is the tail of the whole replay.

use miserly_engine::JournalLine;

use super::super::journal::{Cause, Reader};
use super::super::{Played, compare};
use super::life::Life;

/// Replays lines. The first one has this number.
fn replayed<'a>(first: i64, lines: impl IntoIterator<Item = &'a String>) -> Played {
    replayed_numbered((first..).zip(lines))
}

fn replayed_numbered<'a>(lines: impl IntoIterator<Item = (i64, &'a String)>) -> Played {
    let mut reader = Reader::default();
    for (number, body) in lines {
        reader.line(number, body).unwrap();
    }
    compare(reader.finish().unwrap()).unwrap()
}

/// Returns the indexes of the checkpoints.
fn checkpoints(lines: &[String]) -> Vec<usize> {
    (0..lines.len()).filter(|nth| lines[*nth].starts_with("{\"line\":\"checkpoint\"")).collect()
}

fn effects(lines: &[String]) -> usize {
    let count = |line: &String| match serde_json::from_str(line).unwrap() {
        JournalLine::Round(round) => round.effects.len(),
        _ => 0,
    };
    lines.iter().map(count).sum()
}

/// Compares the replay from each checkpoint with the journal, and so with the whole replay.
fn each_checkpoint_is_a_beginning(policy: &str, opportunistic: bool) {
    for seed in 1..=4 {
        let lines = Life::journal(policy, opportunistic, seed);
        let whole = replayed(1, &lines);
        assert!(whole.difference.is_none(), "{policy}, seed {seed}: {whole:#?}");
        assert!(whole.starts > 40 && whole.missing.is_empty(), "{policy}, seed {seed}: {whole:#?}");
        let checkpoints = checkpoints(&lines);
        assert!(checkpoints.len() > 12, "{} checkpoints", checkpoints.len());
        for nth in checkpoints {
            let tail = replayed(i64::try_from(nth).unwrap() + 1, &lines[nth..]);
            assert!(tail.difference.is_none(), "{policy}, seed {seed}, line {}: {tail:#?}", nth + 1);
            assert_eq!(tail.effects, effects(&lines[nth..]));
            assert!(tail.since.is_some() && tail.missing.is_empty());
        }
    }
}

#[test]
fn each_checkpoint_is_a_beginning_under_miser() {
    each_checkpoint_is_a_beginning("miser", false);
}

#[test]
fn each_checkpoint_is_a_beginning_under_conservative() {
    each_checkpoint_is_a_beginning("conservative", false);
}

#[test]
fn each_checkpoint_is_a_beginning_under_easy() {
    each_checkpoint_is_a_beginning("easy", false);
}

#[test]
fn each_checkpoint_is_a_beginning_under_an_order_by_usage() {
    each_checkpoint_is_a_beginning("easy(order=fair-share, half_life=2d)", false);
}

#[test]
fn each_checkpoint_is_a_beginning_under_gang_scheduling() {
    each_checkpoint_is_a_beginning("gang(quantum=1m)", false);
}

#[test]
fn each_checkpoint_is_a_beginning_under_equipartitioning() {
    each_checkpoint_is_a_beginning("eqspatial(quantum=30m, min_interval=5m)", false);
}

#[test]
fn each_checkpoint_is_a_beginning_under_selective_suspension() {
    each_checkpoint_is_a_beginning("ss(sf=1.2, period=10m)", false);
}

#[test]
fn each_checkpoint_is_a_beginning_under_tunable_selective_suspension() {
    each_checkpoint_is_a_beginning("tss(sf=1.2, period=10m)", false);
}

#[test]
fn each_checkpoint_is_a_beginning_under_immediate_slices() {
    each_checkpoint_is_a_beginning("is(slice=10m)", false);
}

/// A requeued job has a start without an end.
#[test]
fn each_checkpoint_is_a_beginning_under_immediate_service() {
    each_checkpoint_is_a_beginning("immediate(policy=fcfs-backfill, quantum=30m, after=0s)", false);
}

#[test]
fn each_checkpoint_is_a_beginning_with_opportunistic_jobs() {
    each_checkpoint_is_a_beginning("miser", true);
    each_checkpoint_is_a_beginning("conservative", true);
}

#[test]
fn another_content_of_a_checkpoint_is_a_difference() {
    let lines = Life::journal("miser", false, 1);
    let mut differences = 0;
    for nth in checkpoints(&lines) {
        let JournalLine::Checkpoint(mut line) = serde_json::from_str(&lines[nth]).unwrap() else { panic!() };
        if line.queues[0].jobs.pop().is_none() {
            continue;
        }
        let mut other = lines[nth..].to_vec();
        other[0] = serde_json::to_string(&JournalLine::Checkpoint(line)).unwrap();
        differences += usize::from(replayed(1, &other).difference.is_some());
    }
    assert!(differences > 5, "{differences}");
}

/// The first place in the journal where something else is said is found.
#[test]
fn another_policy_and_another_effect_are_differences() {
    for policy in
        ["miser", "easy", "conservative", "ss(sf=1.2, period=10m)", "is(slice=10m)", "gang(quantum=1m)"]
    {
        let lines = Life::journal(policy, false, 1);
        let changed = |this: &str, other: &str, all: bool| {
            let mut first = true;
            let change = |line: &String| {
                let changes = line.contains(this) && (all || first);
                first &= !changes;
                if changes { line.replace(this, other) } else { line.clone() }
            };
            let lines: Vec<String> = lines.iter().map(change).collect();
            assert!(!first, "{this} is nowhere in the journal");
            replayed(1, &lines).difference.is_some()
        };
        // A configuration is said again at each start and each reading.
        assert!(changed(&format!(r#""policy":"{policy}""#), r#""policy":"fcfs""#, true), "{policy}");
        assert!(changed(r#""effect":"started""#, r#""effect":"resumed""#, false), "{policy}");
    }
}

/// Lines are lost: the rounds before them and those from the next checkpoint on are compared.
#[test]
fn a_hole_ends_at_the_next_checkpoint() {
    let lines = Life::journal("conservative", true, 5);
    let checkpoints = checkpoints(&lines);
    for pair in checkpoints.windows(2).filter(|pair| pair[1] - pair[0] > 6) {
        let hole = pair[0] + 3..pair[0] + 5;
        let left = (1..).zip(&lines).filter(|(number, _)| !hole.contains(&(number - 1)));
        let played = replayed_numbered(left.map(|(number, body)| (i64::try_from(number).unwrap(), body)));
        assert!(played.difference.is_none(), "{played:#?}");
        assert_eq!(played.effects, effects(&lines[..hole.start]) + effects(&lines[pair[1]..]));
        let [missing] = &played.missing[..] else { panic!("{played:#?}") };
        let number = |at: usize| i64::try_from(at).unwrap();
        assert_eq!(missing.cause, Cause::Lost(number(hole.start) + 1, number(hole.end)));
        assert!(missing.from < missing.until, "{missing:?}");
    }
}

#[test]
fn a_journal_that_lost_its_first_lines_begins_at_a_checkpoint() {
    let lines = Life::journal("easy", false, 6);
    let played = replayed(2, &lines[1..]);
    assert!(played.difference.is_none() && played.missing.len() == 1, "{played:#?}");
    assert_eq!(played.missing[0].cause, Cause::Lost(1, 1));
    assert_eq!(played.effects, effects(&lines[checkpoints(&lines)[0]..]));
}

/// After a recovery and after a mistake the comparison goes on at the next checkpoint without a stopped queue.
#[test]
fn other_interruptions_end_at_the_next_checkpoint_that_is_a_beginning() {
    let lines = Life::journal("miser", false, 7);
    let checkpoints = checkpoints(&lines);
    let stopped = r#"{"line":"stopped","at":1,"queue":"batch","mistake":"one"}"#;
    for other in [stopped, r#"{"line":"recovered","wall":1800000000000000}"#] {
        let (at, next) = (checkpoints[3] + 1, checkpoints[5]);
        let mut changed = lines.clone();
        changed.splice(at..at + 2, [other.to_owned()]);
        changed[checkpoints[4] - 1] = lines[checkpoints[4]].replacen("},\"", "},\"stopped\":true,\"", 1);
        assert!(changed[checkpoints[4] - 1].contains("stopped"));
        let played = replayed(1, &changed);
        assert!(played.difference.is_none() && played.missing.len() == 1, "{played:#?}");
        assert!(played.missing[0].until.is_some());
        assert_eq!(played.effects, effects(&lines[..at]) + effects(&lines[next..]));
    }
}
