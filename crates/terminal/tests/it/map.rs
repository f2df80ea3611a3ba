//! The map of the processors.

use miserly_terminal::{App, Look, once};
use miserly_view::{Facts, HostFacts, Job, PoolFacts};
use ratatui::buffer::Cell;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Modifier;

use crate::support::{PLAIN, drawn, facts, job, posted, press, running, text, type_in, usual, waiting};

/// Returns the map as text.
fn map(facts: Facts, ascii: bool) -> String {
    once(App::new(posted(facts), Look { colour: false, ascii }).with_processors(), 80)
}

/// Returns the lines of a map, without the head and the bars of the pools.
#[track_caller]
fn check(facts: Facts, ascii: bool, expect: &str) {
    let shown = map(facts, ascii);
    let (_, found) = shown.split_once("Processors").expect("a map");
    let found: Vec<&str> = found.lines().skip(1).take_while(|line| !line.is_empty()).collect();
    assert_eq!(found, expect.lines().skip(1).collect::<Vec<_>>(), "{shown}");
}

#[test]
fn a_pool_on_one_host() {
    let mut known = facts(vec![
        Job { procs: 3, cpus: vec![(0, 1), (4, 4)], ..running(2, "solve", true) },
        Job { cpus: vec![(2, 3)], ..running(3, "render", false) },
        waiting(4, "mesh", 10),
    ]);
    known.pools[0] =
        PoolFacts { cpus: 9, held: 5, offline: 1, numbers: vec![(0, 9)], ..known.pools[0].clone() };
    let expect = "
batch  5 held, 2 free until reserved, 2 free, 1 offline of 10; memory 0B/8GiB
     0 aabba··▒▒x
       a 2 solve anna: 0-1,4  b 3 render berta: 2-3";
    check(known.clone(), false, expect);
    check(known, true, &expect.replace('·', ".").replace('▒', "+"));
}

#[test]
fn a_large_pool_is_drawn_to_scale() {
    let mut known = facts(vec![Job { procs: 3000, ..running(2, "solve", true) }]);
    known.pools[0] = PoolFacts { cpus: 4096, held: 3000, ..known.pools[0].clone() };
    let shown = map(known, true);
    assert!(shown.contains("each character is 4 processors"), "{shown}");
    assert!(shown.contains(&format!("       {}..", "a".repeat(46))), "{shown}");
    assert!(shown.contains("a 2 solve anna: 3000 cpus"), "{shown}");
}

/// Returns a cluster of 64 hosts with 64 processors each, with a job on every host, and one on the first two.
fn cluster() -> Facts {
    let name = |at: i64| format!("node{at:02}");
    let on = |number: i64| Job { hosts: vec![name(number)], procs: 32, ..running(number, "part", false) };
    let wide = Job { hosts: vec![name(1), name(2)], procs: 16, ..running(100, "wide", true) };
    let mut known = facts((1..64).map(on).chain([wide]).collect());
    let host = |at: i64| HostFacts {
        name: name(at),
        cpus: 64,
        held: Some(if at < 3 { 40 } else { 32 * u64::from(at < 64) }),
        unusable: Some("down".to_owned()).filter(|_| at == 64),
        memory: 8 << 30,
        memory_held: 1 << 30,
        ..HostFacts::default()
    };
    known.pools[0].hosts = (1..=64).map(host).collect();
    known
}

#[test]
fn a_cluster_has_a_line_for_each_host() {
    let shown = map(cluster(), true);
    let line =
        |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{shown}"));
    assert!(shown.contains("batch  64 hosts, 2 processors a character"), "{shown}");
    assert_eq!(
        line("node01"),
        format!("node01 {}{}{}  40/64 1GiB/8GiB  a 1, b 100", "a".repeat(16), "b".repeat(4), ".".repeat(12))
    );
    assert_eq!(line("node64"), format!("node64 {}   0/64 1GiB/8GiB down", "x".repeat(32)));
    assert_eq!(shown.lines().filter(|line| line.starts_with("node")).count(), 64);
}

#[test]
fn a_pool_with_one_host_has_both_names() {
    let mut known = cluster();
    known.pools[0].hosts.drain(..63);
    let shown = map(known, true);
    assert!(shown.contains("batch  node64  0 held, 0 free, 64 offline of 64"), "{shown}");
    assert!(shown.contains("memory 1GiB/8GiB  down"), "{shown}");
}

#[test]
fn keys_scroll_it_and_select_jobs() {
    let mut app = App::new(posted(cluster()), PLAIN);
    type_in(&mut app, "p");
    let first = |app: &mut App| {
        let shown = text(app);
        shown.lines().find(|line| line.starts_with("node")).map(|line| line[..6].to_owned())
    };
    assert_eq!(first(&mut app).as_deref(), Some("node01"));
    assert!(text(&mut app).contains("of 65") && !text(&mut app).contains("[1 all]"));
    press(&mut app, KeyCode::PageDown);
    press(&mut app, KeyCode::PageDown);
    let far = first(&mut app);
    assert!(far.as_deref() > Some("node20"), "{far:?}");
    // The map moves to a job that is selected.
    press(&mut app, KeyCode::Up);
    assert_eq!(first(&mut app).as_deref(), Some("node01"));
    let buffer = drawn(&mut app, 80, 24);
    let reversed = |cell: &&Cell| cell.symbol() == "a" && cell.modifier.contains(Modifier::REVERSED);
    assert!(buffer.content.iter().filter(reversed).count() > 16, "the selected job is reversed");
    type_in(&mut app, "G");
    assert!(text(&mut app).contains("job 100: "));
    type_in(&mut app, "p");
    assert!(text(&mut app).contains("[1 all]"));
}

#[test]
fn names_of_other_users_are_those_of_the_queue() {
    let mut known = usual();
    known.jobs.push(Job { name: "?".to_owned(), ..running(9, "", false) }.into());
    known.jobs.push(job(10, "foreign", false).into());
    let shown = map(known, false);
    assert!(shown.contains("9 ? berta: 2 cpus") && !shown.contains("foreign"), "{shown}");
}

/// With time slices, jobs have more processors than there are: those beyond the first line are no processors of their own.
#[test]
fn cells_beyond_the_processors_are_shared() {
    let of = |number, name| Job { procs: 4, cpus: vec![(0, 3)], ..running(number, name, true) };
    let jobs = (2..40).map(|number| of(number, "solve")).collect();
    let mut known = facts(jobs);
    known.pools[0] = PoolFacts { cpus: 4, held: 4, numbers: vec![(0, 3)], ..known.pools[0].clone() };
    let shown = map(known, false);
    let gutters: Vec<&str> = shown
        .lines()
        .skip_while(|line| !line.starts_with("batch  4 held"))
        .skip(1)
        .map(|line| line.get(..7).unwrap_or(""))
        .collect();
    assert_eq!(gutters[..3], ["     0 ", "shared ", "shared "], "{shown}");
}
