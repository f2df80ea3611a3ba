//! Clients of several users at once, two of which flood the daemon.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use miserly_api::model::Filter;
use rustix::process::Uid;
use rustix::thread::set_thread_uid;

use super::wire::request;
use super::{Daemon, SOON, now, sh};

/// The users that flood.
const HOSTILE: [u32; 2] = [33, 34];

/// The threads of each of them.
const THREADS: usize = 70;

/// The clients of the daemon's user.
const HONEST: usize = 60;

/// The requests of each honest client.
const REQUESTS: usize = 3;

/// What the honest clients had.
pub(crate) struct Honest {
    /// The numbers of their jobs.
    pub(crate) jobs: Vec<i64>,
    /// How long each submission took.
    pub(crate) submits: Vec<Duration>,
    /// How long each list took.
    pub(crate) lists: Vec<Duration>,
}

/// Lets the honest clients submit and list, while the others flood. Returns the statuses of the others' answers, too.
pub(crate) fn flood(daemon: &Daemon) -> (Honest, Vec<u16>) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let hostile = HOSTILE.iter().flat_map(|uid| (0..THREADS).map(move |nth| (*uid, nth)));
        let hostile: Vec<_> = hostile
            .map(|(uid, nth)| {
                let stop = &stop;
                scope.spawn(move || {
                    // Of this thread only. It ends with it.
                    set_thread_uid(Uid::from_raw(uid)).expect("root becomes another user");
                    annoy(daemon, nth, stop)
                })
            })
            .collect();
        let honest: Vec<_> = (0..HONEST).map(|_| scope.spawn(|| work(daemon))).collect();
        let mut all = Honest { jobs: vec![], submits: vec![], lists: vec![] };
        for client in honest {
            let one = client.join().expect("it is served");
            all.jobs.extend(one.jobs);
            all.submits.extend(one.submits);
            all.lists.extend(one.lists);
        }
        stop.store(true, Ordering::Relaxed);
        let statuses = hostile.into_iter().flat_map(|client| client.join().expect("it is answered"));
        (all, statuses.collect())
    })
}

fn work(daemon: &Daemon) -> Honest {
    let client = daemon.client();
    let mut had = Honest { jobs: vec![], submits: vec![], lists: vec![] };
    for _ in 0..REQUESTS {
        let began = now();
        let number = client.submit(&sh("true", 60.0)).expect("it is accepted").jobs[0].number;
        had.submits.push(began.elapsed());
        let began = now();
        let after = Filter { after: Some(number - 1), limit: Some(1), all: true, ..Filter::default() };
        let listed = client.jobs(&after).expect("a list");
        had.lists.push(began.elapsed());
        assert_eq!(listed.first().map(|job| job.number), Some(number), "its own job is listed at once");
        had.jobs.push(number);
    }
    had
}

/// Sends requests until the end. Returns the statuses of the answers.
fn annoy(daemon: &Daemon, nth: usize, stop: &AtomicBool) -> Vec<u16> {
    let job = r#"{"command": ["/bin/true"], "directory": "/", "time": 5, "cpus": 1}"#;
    let list = request("GET", "/v1/jobs?all=true&details=true&limit=10000", "");
    let mut statuses = vec![];
    while !stop.load(Ordering::Relaxed) {
        let bytes = match nth % 7 {
            0 | 1 => list.clone(),
            2 => request("POST", "/v1/quote", job),
            3 => request("POST", "/v1/jobs", job),
            4 => request("POST", "/v1/jobs", &format!("\"{}\"", "#".repeat(3 << 20))),
            5 => list[..20].to_vec(),
            _ => b"GET /v1/pools HTTP/1.1\r\nhost: x\r\n\r\n".repeat(50),
        };
        let Ok(mut stream) = UnixStream::connect(&daemon.socket) else { continue };
        let _ = stream.set_write_timeout(Some(SOON));
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        let _ = stream.write_all(&bytes);
        if nth % 7 > 4 {
            // It says no more, and reads nothing.
            thread::sleep(Duration::from_millis(200));
        }
        let mut answer = [0; 12];
        if stream.read_exact(&mut answer).is_ok() {
            let text = String::from_utf8_lossy(&answer);
            statuses.extend(text.rsplit(' ').next().and_then(|status| status.parse::<u16>().ok()));
            // A slow reader of what follows.
            let _ = stream.read(&mut [0; 1000]);
        }
    }
    statuses
}
