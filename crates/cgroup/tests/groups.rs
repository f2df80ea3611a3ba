//! Groups of this machine, as far as its kernel offers them to tests.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use miserly_cgroup::{
    Capability, Device, DeviceKind, DeviceRange, DeviceRules, JobGroup, Limits, Processors, Tree, group_of,
};
use miserly_test_support::Requirement;

/// A tree for one test. Removed at its end.
struct Place(Tree);

impl Place {
    /// Returns `None`, with a message, where this user may create no groups.
    fn new(name: &str) -> Option<Place> {
        let name = format!("miserly-test-{name}-{}", std::process::id());
        let tree = group_of(std::process::id()).and_then(|group| Tree::open(&group.path().join(name)).ok());
        let _ = Requirement::Cgroup.is_met(tree.is_some(), "needs a cgroup v2 in which it may create groups");
        tree.map(Place)
    }

    fn job(&self) -> JobGroup {
        let job = self.0.job(7, 1);
        job.create().expect("a group");
        job
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for (_, _, job) in self.0.jobs().unwrap_or_default() {
            let _ = job.kill();
            wait_until("the end of all processes", || job.events().is_ok_and(|events| !events.populated));
        }
        self.0.group().remove().expect("no process is left");
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
    panic!("{what}");
}

/// Starts a process in the group of a job.
fn start(job: &JobGroup, command: &str) -> Child {
    // It has no children before it has joined.
    let command = format!("read go; {command}");
    let mut child =
        Command::new("/bin/sh").args(["-c", &command]).stdin(Stdio::piped()).spawn().expect("a process");
    job.group().add(child.id()).expect("the process joins");
    drop(child.stdin.take());
    child
}

#[test]
fn a_job_is_frozen_thawed_and_killed() {
    let Some(place) = Place::new("freeze") else { return };
    let job = place.job();
    let mut child = start(&job, "while :; do :; done");
    assert!(job.events().unwrap().populated);
    job.freeze(true).unwrap();
    wait_until("frozen", || job.events().unwrap().frozen);
    // The kernel adds up what ran before with a delay.
    let mut before = job.usage().unwrap().cpu;
    wait_until("a frozen job does not run", || {
        thread::sleep(Duration::from_millis(50));
        let last = std::mem::replace(&mut before, job.usage().unwrap().cpu);
        last == before
    });
    job.freeze(false).unwrap();
    wait_until("progress", || job.usage().unwrap().cpu > before);
    job.freeze(true).unwrap();
    // A frozen job is killed as well.
    job.kill().unwrap();
    child.wait().unwrap();
    wait_until("empty", || !job.events().unwrap().populated);
    job.remove().unwrap();
    assert!(job.events().unwrap_err().is_missing());
}

#[test]
fn children_that_leave_their_session_are_killed() {
    let Some(place) = Place::new("leave") else { return };
    let job = place.job();
    let mut child = start(&job, "sleep 0.2; setsid sh -c 'setsid sleep 1000 &' & wait");
    child.wait().unwrap();
    wait_until("one is left", || job.processes().unwrap().len() == 1);
    job.kill().unwrap();
    wait_until("empty", || !job.events().unwrap().populated);
}

#[test]
fn a_watch_reports_the_end_of_the_last_process() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let Some(place) = Place::new("watch") else { return };
    let job = place.job();
    let mut child = start(&job, "sleep 1000");
    let events = job.watch().unwrap();
    let poll_for = |seconds| {
        let mut polled = [PollFd::new(&events, PollFlags::PRI)];
        poll(&mut polled, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })).unwrap()
    };
    events.clear();
    assert_eq!(poll_for(0), 0);
    job.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(poll_for(20), 1);
}

#[test]
fn a_probe_tells_the_truth_about_every_setting() {
    let Some(place) = Place::new("probe") else { return };
    let capabilities = place.0.probe(0).unwrap();
    assert!(capabilities.has(Capability::Freeze) && capabilities.has(Capability::Kill));
    let job = place.job();
    let mib = 1 << 20;
    for (capability, limits) in [
        (Capability::Cpus, Limits { cpus: Some(Processors::Shared(vec![0])), ..Limits::default() }),
        (Capability::Idle, Limits { idle: Some(true), ..Limits::default() }),
        (Capability::MemoryMax, Limits { memory_max: Some(mib), ..Limits::default() }),
        (Capability::Pids, Limits { pids: Some(10), ..Limits::default() }),
    ] {
        let failures = job.limit(&limits);
        assert_eq!(failures.is_empty(), capabilities.has(capability), "{capability:?}: {failures:?}");
    }
}

#[test]
fn the_tree_is_raised_as_long_as_a_job_is() {
    let Some(place) = Place::new("weight") else { return };
    if !place.0.probe(0).unwrap().has(Capability::Idle) {
        return;
    }
    let weights =
        || [place.0.group(), &place.0.group().child("jobs")].map(|group| group.read("cpu.weight").unwrap());
    let (job, other) = (place.job(), place.0.job(8, 1));
    other.create().unwrap();
    place.0.raise(&job).unwrap();
    place.0.raise(&other).unwrap();
    assert_eq!((job.weight().unwrap(), weights()), (10_000, ["10000", "10000"].map(str::to_owned)));
    place.0.lower(&job).unwrap();
    assert_eq!((job.weight().unwrap(), weights()), (100, ["10000", "10000"].map(str::to_owned)));
    // The group of a job whose shim was killed may be gone.
    other.remove().unwrap();
    place.0.lower(&other).unwrap();
    assert_eq!(weights(), ["100", "100"].map(str::to_owned));
    // An idle group has no weight.
    job.limit(&Limits { idle: Some(true), ..Limits::default() });
    assert!(place.0.raise(&job).is_err());
    assert_eq!(weights(), ["100", "100"].map(str::to_owned));
}

#[test]
fn memory_of_the_tree_is_kept_only_if_all_groups_above_keep_it() {
    let Some(place) = Place::new("memory") else { return };
    let size = 8 << 20;
    if !place.0.probe(0).unwrap().has(Capability::MemoryMin) {
        return;
    }
    place.0.protect_memory(size).unwrap();
    let below = Tree::open(&place.0.group().path().join("below")).unwrap();
    let error = below.protect_memory(2 * size).unwrap_err().to_string();
    assert!(
        error.ends_with(&format!("/memory.min: \"{}\" was written, and the kernel has \"{size}\"", 2 * size)),
        "{error}"
    );
    below.group().remove().unwrap();
}

#[test]
fn a_folder_elsewhere_is_no_tree() {
    let folder = tempfile::tempdir().unwrap();
    let error = Tree::open(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("is not in a file system of cgroup v2"), "{error}");
    let error = Tree::open(&folder.path().join("a/b")).unwrap_err().to_string();
    assert!(error.contains("No such file"), "{error}");
}

/// Tries to read a device node as a process of a job. Returns the output.
fn output(job: &JobGroup, command: &str) -> String {
    let command = format!("read go; {command}");
    let mut child = Command::new("/bin/sh")
        .args(["-c", &command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    job.group().add(child.id()).expect("the process joins");
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("an output");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// `/dev/zero` and `/dev/full` stand for two GPUs: character devices of major number 1, with the minor numbers 5 and 7.
#[test]
fn a_job_cannot_open_or_make_the_devices_of_others() {
    let Some(place) = Place::new("devices") else { return };
    let can = place.0.try_devices();
    if !Requirement::Root.is_met(can.is_ok(), "needs the right to attach programs to control groups") {
        return;
    }
    let [zero, full] =
        ["/dev/zero", "/dev/full"].map(|path| Device::of_node(Path::new(path)).unwrap().expect("a device"));
    let both = DeviceRange { minors: (zero.minor, full.minor), ..zero.into() };
    assert_eq!((both.kind, both.major, both.minors), (DeviceKind::Character, 1, (5, 7)));
    let job = place.job();
    job.hide_devices(&DeviceRules { hidden: vec![both], own: vec![full] }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display();
    let try_read = |path: &str| format!("if (: < {path}); then echo yes; else echo no; fi");
    assert_eq!(output(&job, &try_read("/dev/zero")), "no");
    assert_eq!(output(&job, &try_read("/dev/full")), "yes");
    assert_eq!(output(&job, &try_read("/dev/null")), "yes");
    // A child.
    assert_eq!(output(&job, &format!("sh -c '{}' & wait", try_read("/dev/zero"))), "no");
    // A node of its own, and one that somebody made for it.
    let make = |name: &str, minor: u32| format!("mknod {folder}/{name} c 1 {minor} && echo made");
    assert_eq!(output(&job, &make("zero", 5)), "");
    assert_eq!(output(&job, &make("full", 7)), "made");
    assert!(Command::new("sh").args(["-c", &make("given", 5)]).status().unwrap().success());
    assert_eq!(output(&job, &try_read(&format!("{folder}/given"))), "no");
    // A group below, in which it could attach a program that permits all.
    let below = job.group().create("below").unwrap();
    let inner = JobGroup::open(below.path()).unwrap();
    inner.hide_devices(&DeviceRules::default()).unwrap();
    assert_eq!(output(&inner, &try_read("/dev/zero")), "no");
    // Another job has the other device.
    let other = place.0.job(8, 1);
    other.create().unwrap();
    other.hide_devices(&DeviceRules { hidden: vec![both], own: vec![zero] }).unwrap();
    assert_eq!(
        [output(&other, &try_read("/dev/zero")), output(&other, &try_read("/dev/full"))],
        ["yes", "no"]
    );
    // Nothing is hidden outside of the groups.
    assert!(Command::new("sh").args(["-c", ": < /dev/zero"]).status().unwrap().success());
}
