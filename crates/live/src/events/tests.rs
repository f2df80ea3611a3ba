//! A hub over an engine without processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use jiff::Timestamp;
use miserly_api::model::{ForecastView, Problem, Submission};
use miserly_core::{Calendar, OpportunisticConfig, Resources, Span};
use miserly_engine::{
    Absence, Action, Attempt, Caller, DaemonInfo, DaemonReply, DaemonRequest, Engine, Input, Launcher, Queue,
    QueueTerms, Requester, Setup, SlotSchedule, WaitingShimLimits,
};
use tempfile::TempDir;

use super::hub::{Hub, Sources, Stream};
use crate::clock::{BootClock, MachineClocks};
use crate::forecasts::Forecasts;
use crate::process::LauncherNotes;
use crate::store::{Readers, Store};

struct NoProcesses;

impl Launcher for NoProcesses {
    fn check(&self, _: &Submission, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    fn act(&mut self, _: Attempt, _: Action) {}

    fn rotate_slots(&mut self, _: &str, _: Option<&SlotSchedule>) {}
}

/// A requester that takes no reply.
#[derive(Debug)]
struct Nobody;

impl Requester for Nobody {
    fn reply(self: Box<Self>, reply: Result<DaemonReply, Problem>) {
        reply.expect("an accepted job");
    }

    fn is_gone(&self) -> bool {
        false
    }
}

/// An engine with a queue of one processor on a machine of two, and a hub over it.
struct Parts {
    folder: TempDir,
    clock: BootClock,
    engine: Engine<NoProcesses, Store>,
    notes: LauncherNotes,
    forecasts: Forecasts,
}

impl Parts {
    fn new() -> Parts {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = BootClock::start("one".into(), MachineClocks(Timestamp::now));
        let store = Store::open(folder.path()).expect("a state");
        let mut engine = Engine::open(setup(), DaemonInfo::default(), store, NoProcesses, clock.read())
            .expect("an engine");
        engine.begin(clock.read(), &Absence::default()).expect("a commit");
        let (notes, forecasts) = (LauncherNotes::default(), Forecasts::default());
        Parts { folder, clock, engine, notes, forecasts }
    }

    fn submit(&mut self, no_opportunistic: bool) {
        let submission = Submission {
            command: vec!["/bin/true".into()],
            directory: "/".into(),
            cpus: 1,
            time: 600.0,
            no_opportunistic,
            ..Submission::default()
        };
        let request = Box::new(DaemonRequest::Submit(submission));
        let input = Input::Request { caller: Caller::new(0), request, requester: Box::new(Nobody) };
        self.engine.process_batch(self.clock.read(), vec![input]).expect("a commit");
    }

    fn hub(&self) -> Arc<Hub> {
        let sources = Sources {
            snapshots: self.engine.snapshots(),
            ended: Readers::new(self.folder.path()),
            clock: self.clock.clone(),
            forecasts: self.forecasts.clone(),
            notes: self.notes.clone(),
        };
        Arc::new(Hub::new(sources, Caller::new(0)))
    }
}

fn setup() -> Setup {
    let second = Span::from_ticks(1_000_000);
    Setup {
        queues: vec![Queue {
            name: "batch".into(),
            policy: "easy".parse().expect("a policy"),
            pool: Calendar::constant(Resources::cpus(1)),
            classes: None,
            charge: None,
            gpus: None,
            terms: QueueTerms::default(),
        }],
        cpus: vec![0],
        opportunistic_cpus: vec![0, 1],
        grace: second,
        cleanup_time: second,
        orphan_resume_delay: second,
        opportunistic: Some(OpportunisticConfig { lead: second, machine: Resources::cpus(2) }),
        waiting_shims: WaitingShimLimits::NONE,
        keep_history: None,
        topology: miserly_engine::Topology::default(),
        whole_cores: false,
        gpus: 0,
        user_limits: miserly_engine::UserLimits::default(),
        reservations: vec![],
    }
}

fn has(event: &Bytes, text: &str) -> bool {
    String::from_utf8_lossy(event).contains(text)
}

#[tokio::test]
async fn parking_without_a_commit_is_shown_to_all_streams() {
    let mut parts = Parts::new();
    parts.submit(false);
    parts.submit(false);
    let hub = parts.hub();
    let stream = Stream::new(&hub);
    let (first, mut receiver) = stream.begin(None).await.expect("a begin");
    assert!(first.len() == 1 && has(&first[0], "\"parked\":false"), "{first:?}");
    assert!(!hub.advance());
    parts.notes.set_parked(&[Attempt { job: 2, nth: 1 }].into());
    assert!(hub.advance() && !hub.advance());
    let parked = receiver.recv().await.expect("an event");
    assert!(has(&parked, "\"parked\":true") && has(&parked, "event: change"), "{parked:?}");
    // A later stream has it, and one that comes again.
    let (begin, _) = Stream::new(&hub).begin(None).await.expect("a begin");
    assert_eq!(begin, [first[0].clone(), parked.clone()]);
    let (missed, _) = stream.begin(Some(parts.engine.snapshots().latest().journal())).await.expect("a begin");
    assert_eq!(missed, [parked]);
    parts.notes.set_parked(&[].into());
    parts.submit(true);
    assert!(hub.advance());
    let changes = [receiver.recv().await, receiver.recv().await].map(|event| event.expect("an event"));
    assert!(has(&changes[0], "\"number\":3") && has(&changes[1], "\"parked\":false"), "{changes:?}");
}

#[tokio::test]
async fn forecasts_are_those_of_waiting_jobs_and_their_absence_is_told() {
    let mut parts = Parts::new();
    parts.submit(true);
    parts.submit(true);
    let hub = parts.hub();
    let (_, mut receiver) = Stream::new(&hub).begin(None).await.expect("a begin");
    assert!(!hub.forecast(), "there was none, and is none");
    let at = Timestamp::now();
    let forecast = ForecastView { made: at, median: at, by_80: Some(at), by_95: None };
    parts.forecasts.set([(1, forecast), (2, forecast)].into());
    assert!(hub.forecast());
    let some = receiver.recv().await.expect("an event");
    assert!(has(&some, "\"job\":2") && !has(&some, "\"job\":1"), "{some:?}");
    parts.forecasts.set(BTreeMap::new());
    assert!(hub.forecast() && !hub.forecast());
    assert!(has(&receiver.recv().await.expect("an event"), "\"forecasts\":[]"));
}

#[tokio::test]
async fn streams_that_are_behind_share_one_snapshot() {
    let mut parts = Parts::new();
    parts.submit(true);
    let hub = parts.hub();
    let streams: Vec<Stream> = (0..8).map(|_| Stream::new(&hub)).collect();
    let mut begins = vec![];
    for stream in &streams {
        begins.push(stream.begin(None).await.expect("a begin").0);
    }
    assert!(begins.iter().all(|begin| begin[0].as_ptr() == begins[0][0].as_ptr()), "one text");
    // After many changes it is made again.
    for _ in 0..40 {
        parts.submit(true);
        hub.advance();
    }
    let (begin, _) = streams[0].begin(None).await.expect("a begin");
    assert!(begin.len() == 1 && has(&begin[0], "\"number\":41"));
}
