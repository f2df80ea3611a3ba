//! The protocol between versions: lines that a peer does not know, and recorded lines of version 0.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use miserly_launch::{
    AttemptPhase, FoundAttempt, Identity, MachineClock as _, PROTOCOL_VERSION, ShimCommand, ShimReply,
    current_boot, find,
};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{SOON, Test, done, exe, kill, until};

/// A command of version 0, as it was recorded.
const OLD_STATUS: &str = r#"{"number":1,"command":"status"}"#;
const OLD_KILL: &str = r#"{"number":2,"command":{"kill":{"grace":{"secs":0,"nanos":0}}}}"#;
/// The first line of a shim of version 0 to its launcher.
const OLD_CLAIMED: &str = r#""Claimed""#;

/// One end of a connection that speaks in lines.
struct Lines(BufReader<UnixStream>);

impl Lines {
    fn new(stream: UnixStream) -> Lines {
        stream.set_read_timeout(Some(SOON)).unwrap();
        Lines(BufReader::new(stream))
    }

    fn write(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    #[track_caller]
    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }
}

fn connected(test: &Test) -> Lines {
    Lines::new(UnixStream::connect(test.dir().join("ctl")).unwrap())
}

#[test]
fn both_sides_say_their_version_once_on_each_connection() {
    let test = Test::new("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    assert_eq!(shim.hello().unwrap().version, PROTOCOL_VERSION);
    assert_eq!(done(&mut shim, &ShimCommand::Status).affinity, crate::support::cpus());
    assert_eq!(shim.hello().unwrap().version, PROTOCOL_VERSION);
    let mut daemon = connected(&test);
    daemon.write(r#"{"number":1,"command":"status","hello":{"version":99,"program":"9.9","more":[]}}"#);
    assert_eq!(daemon.read()["hello"]["version"], PROTOCOL_VERSION);
    daemon.write(r#"{"number":2,"command":"status"}"#);
    assert_eq!(daemon.read()["hello"], Value::Null);
    shim.reconnect().unwrap();
    done(&mut shim, &ShimCommand::Status);
    kill(&mut shim);
}

#[test]
fn a_line_that_a_shim_does_not_know_is_answered_and_the_connection_stays() {
    let test = Test::new("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    let mut daemon = connected(&test);
    let unknown = [
        ("nonsense", 0),
        ("", 0),
        ("{}", 0),
        (r#"{"number":5}"#, 5),
        (r#"{"number":6,"command":"freeze"}"#, 6),
        (r#"{"number":7,"command":{"kill":{"grace":"soon"}}}"#, 7),
    ];
    for (line, number) in unknown {
        daemon.write(line);
        let reply = daemon.read();
        assert_eq!(reply["number"], number, "{line}");
        assert!(reply["reply"]["refused"]["unknown"]["error"].is_string(), "{reply}");
    }
    daemon.write(&"x".repeat(3 << 20));
    assert!(daemon.read()["reply"]["refused"]["unknown"].is_object());
    daemon.write(OLD_STATUS);
    assert_eq!(daemon.read()["reply"]["done"]["phase"], "running");
    shim.reconnect().unwrap();
    kill(&mut shim);
}

/// Somebody sends without end; the window ends nevertheless.
#[test]
fn a_flood_of_messages_does_not_keep_a_shim_from_its_duties() {
    let test = Test::new("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    let end = miserly_launch::BootTime::now().after(Duration::from_secs(2));
    done(&mut shim, &ShimCommand::SetEnd { end, max_after_resume: None });
    let stream = UnixStream::connect(test.dir().join("ctl")).unwrap();
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    let reader =
        std::thread::spawn(
            move || while replies.read_until(b'\n', &mut vec![]).is_ok_and(|read| read > 0) {},
        );
    let writer = std::thread::spawn(move || {
        let mut stream = stream;
        while stream.write_all(&b"{}\n".repeat(1000)).is_ok() {}
    });
    let ended = crate::support::ended(&shim);
    assert_eq!(ended.cause, Some(miserly_launch::EndCause::Time));
    assert!(ended.late.is_none_or(|late| late < Duration::from_secs(5)), "{ended:?}");
    writer.join().unwrap();
    reader.join().unwrap();
}

/// A daemon of version 0 launches and ends an attempt.
#[test]
fn a_daemon_of_version_0_has_a_shim_of_this_version() {
    let test = Test::new("echo here; sleep 100");
    fs::create_dir(test.dir()).unwrap();
    fs::write(test.dir().join("spec.json"), serde_json::to_vec(&test.spec).unwrap()).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut shim = Command::new(exe());
    shim.arg("shim").arg(test.dir()).env_clear().stdin(OwnedFd::from(theirs)).stderr(Stdio::null());
    assert!(shim.status().unwrap().success());
    drop(shim);
    let mut daemon = Lines::new(ours);
    assert_eq!(daemon.read(), serde_json::from_str::<Value>(OLD_CLAIMED).unwrap());
    daemon.write(OLD_STATUS);
    let reply = daemon.read();
    assert_eq!((reply["number"].as_u64(), reply.get("hello")), (Some(1), None), "{reply}");
    let state = reply["reply"]["done"].as_object().expect("a state");
    // A daemon of version 0 needs these fields.
    assert!(["phase", "idle", "cpus", "end"].iter().all(|field| state.contains_key(*field)), "{reply}");
    test.wait_out("here");
    daemon.write(OLD_KILL);
    assert_eq!(daemon.read()["number"], 2);
    until(|| test.dir().join("end.json").exists().then_some(()));
    let end: Value = serde_json::from_slice(&fs::read(test.dir().join("end.json")).unwrap()).unwrap();
    assert_eq!((&end["cause"], &end["exit"]["signal"]["signal"]), (&json!("user"), &json!(9)));
}

/// The folder of a shim that this test plays.
struct FakeShim {
    folder: TempDir,
    listener: UnixListener,
    _lock: File,
}

impl FakeShim {
    fn new() -> FakeShim {
        let folder = TempDir::new().unwrap();
        let lock = File::create(folder.path().join("lock")).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        let listener = UnixListener::bind(folder.path().join("ctl")).unwrap();
        // The queue of the standard library has thousands of places: a test that fills it takes the descriptors of others.
        rustix::net::listen(&listener, 8).unwrap();
        let pid = std::process::id();
        let start_time = crate::support::stat(pid).unwrap()[19].parse().unwrap();
        let boot_id = current_boot().unwrap();
        let identity = serde_json::to_vec(&Identity { pid, start_time, boot_id }).unwrap();
        fs::write(folder.path().join("shim.json"), identity).unwrap();
        FakeShim { folder, listener, _lock: lock }
    }

    /// Answers one command with this text, in which `N` is its number, and returns the command.
    fn answer(self, reply: &'static str) -> std::thread::JoinHandle<(FakeShim, Value)> {
        std::thread::spawn(move || {
            let mut daemon = Lines::new(self.listener.accept().unwrap().0);
            let command = daemon.read();
            daemon.write(&reply.replace('N', &command["number"].to_string()));
            // The daemon reads it before the connection closes.
            let _ = daemon.0.read_line(&mut String::new());
            (self, command)
        })
    }
}

#[test]
fn a_shim_of_version_0_has_a_daemon_of_this_version() {
    let fake = FakeShim::new();
    let dir = fake.folder.path().to_owned();
    let fake =
        fake.answer(r#"{"number":N,"reply":{"done":{"phase":"running","idle":false,"cpus":[0],"end":77}}}"#);
    let FoundAttempt::Alive(mut shim) = find(&dir).unwrap() else { panic!("it is not there") };
    let state = done(&mut shim, &ShimCommand::Status);
    assert_eq!((state.phase, state.cpus, state.affinity), (AttemptPhase::Running, vec![0], vec![]));
    assert_eq!(shim.hello().unwrap().version, 0);
    drop(shim);
    let (_fake, command) = fake.join().unwrap();
    // What version 0 reads: the number and the name, and no other form of them.
    assert_eq!((&command["number"], &command["command"]), (&json!(1), &json!("status")));
}

#[test]
fn a_reply_of_a_later_version_is_an_unknown_one() {
    let fake = FakeShim::new();
    let dir = fake.folder.path().to_owned();
    let fake =
        fake.answer(r#"{"number":N,"reply":{"postponed":{"by":3}},"hello":{"version":7,"program":"7.0"}}"#);
    let FoundAttempt::Alive(mut shim) = find(&dir).unwrap() else { panic!("it is not there") };
    let reply = shim.request(&ShimCommand::Resume).unwrap();
    assert!(matches!(reply, ShimReply::Unknown { .. }), "{reply:?}");
    drop(shim);
    fake.join().unwrap();
}

#[test]
fn a_full_queue_of_connections_is_not_waited_for() {
    let fake = FakeShim::new();
    let ctl = fake.folder.path().join("ctl");
    let others: Vec<UnixStream> = (0..100)
        .map_while(|_| {
            use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
            connect(&socket, &SocketAddrUnix::new(&ctl).unwrap()).ok()?;
            Some(UnixStream::from(socket))
        })
        .collect();
    assert!(others.len() < 100, "the queue is not full");
    let now = miserly_launch::BootTime::now();
    let found = miserly_launch::find_until(fake.folder.path(), now);
    assert!(found.is_err(), "{} others", others.len());
    assert!(miserly_launch::BootTime::now().since(now) < Duration::from_secs(5));
}
