//! The first process-management interface of MPICH (PMI-1), by which the tasks of a step find each other.
//!
//! Each task has a socket, on which it sends lines such as `cmd=put key=K value=V`, and gets one line for each.
//! Between two barriers all tasks store what the others read.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};
use nix::unistd::getpid;

use super::step::small_thread;

/// The longest name of a space of keys, the longest key and the longest value.
const MOST: [usize; 3] = [256, 64, 4096];

/// The longest line: the longest names and value, and the words between them.
const LONGEST: u64 = (MOST[0] + MOST[1] + MOST[2] + 256) as u64;

/// The most keys for each task of a step.
const MOST_KEYS: u64 = 4096;

/// The space that all tasks of a step share.
pub(super) struct Space {
    name: String,
    tasks: u64,
    /// Whether a task has ended the step.
    has_ended: AtomicBool,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    values: BTreeMap<String, String>,
    /// The sockets of the tasks that wait at a barrier.
    waiting: Vec<Arc<UnixStream>>,
    /// The sockets of the tasks that are served, and the threads that serve them.
    served: Vec<(Weak<UnixStream>, JoinHandle<()>)>,
}

/// What a request leads to.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Line(String),
    /// The task waits for the others.
    Barrier,
    /// The task needs the others no longer.
    Finalized,
    /// The step ends.
    Abort,
}

impl Space {
    /// Returns the space of the tasks of a step, which has a name of its own on this machine.
    pub(super) fn new(job: &str, step: u64, tasks: u64) -> Arc<Space> {
        let name = format!("kvs_{job}_{step}");
        // All ranks are on one machine, in order.
        let mapping = ("PMI_process_mapping".to_owned(), format!("(vector,(0,1,{tasks}))"));
        let shared = Shared { values: BTreeMap::from([mapping]), ..Shared::default() };
        Arc::new(Space { name, tasks, has_ended: AtomicBool::new(false), shared: Mutex::new(shared) })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to serve a task. Returns its end of the socket, which it inherits.
    ///
    /// # Errors
    /// If the kernel refuses a socket or a thread.
    pub(super) fn serve(self: &Arc<Space>) -> std::io::Result<OwnedFd> {
        let (own, of_task) = UnixStream::pair()?;
        let own = Arc::new(own);
        let (socket, space) = (Arc::downgrade(&own), Arc::clone(self));
        let serve = move || {
            if space.answer_all(&own) {
                space.has_ended.store(true, Ordering::Release);
                // The reader of signals passes it on to all tasks.
                let _ = kill(getpid(), Signal::SIGTERM);
            }
        };
        let thread = small_thread().spawn(serve)?;
        self.shared().served.push((socket, thread));
        Ok(of_task.into())
    }

    /// Returns whether a task has ended the step.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Closes the sockets of all tasks. The step ends if a task has used its own, because the tasks do not find each other.
    pub(super) fn give_up(&self) {
        let served = std::mem::take(&mut self.shared().served);
        for socket in served.iter().filter_map(|(socket, _)| socket.upgrade()) {
            // A task that has ended has closed its end.
            let _ = socket.shutdown(Shutdown::Both);
        }
        for (_, thread) in served {
            // The descriptor is closed when the thread has ended, also after a panic.
            let _ = thread.join();
        }
    }

    /// Returns the variables of a task whose end of the socket has a number.
    pub(super) fn variables(&self, rank: u64, socket: &OwnedFd) -> [(String, String); 4] {
        [
            ("PMI_FD", socket.as_raw_fd().to_string()),
            ("PMI_RANK", rank.to_string()),
            ("PMI_SIZE", self.tasks.to_string()),
            ("PMI_JOBID", self.name.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    }

    /// Answers a task until its end. Returns whether the step ends: a task that used the interface and ends without its last
    /// request leaves the others waiting for ever.
    fn answer_all(&self, socket: &Arc<UnixStream>) -> bool {
        let mut reader = BufReader::new(&**socket);
        let mut line = String::new();
        let mut used = false;
        loop {
            line.clear();
            let read = Read::take(&mut reader, LONGEST + 1).read_line(&mut line);
            let Ok(count @ 1..) = read else { break };
            used = true;
            if count as u64 > LONGEST {
                break;
            }
            let answer = self.answer(&line);
            match &answer {
                Answer::Line(text) => send(socket, text),
                Answer::Barrier => self.arrive(socket),
                Answer::Finalized => {
                    send(socket, "cmd=finalize_ack rc=0\n");
                    return false;
                }
                Answer::Abort => return true,
            }
        }
        used
    }

    /// Lets all tasks go on once the last one has arrived. A task arrives once.
    fn arrive(&self, socket: &Arc<UnixStream>) {
        let mut shared = self.shared();
        if shared.waiting.iter().any(|one| Arc::ptr_eq(one, socket)) {
            return;
        }
        shared.waiting.push(Arc::clone(socket));
        if shared.waiting.len() as u64 == self.tasks {
            shared.waiting.drain(..).for_each(|one| send(&one, "cmd=barrier_out rc=0\n"));
        }
    }

    fn answer(&self, line: &str) -> Answer {
        let field = |name: &str| {
            let words = line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
            words.into_iter().find(|(own, _)| *own == name).map(|(_, value)| value)
        };
        let [most_name, most_key, most_value] = MOST;
        Answer::Line(match field("cmd").unwrap_or_default() {
            "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n".to_owned(),
            "get_maxes" => {
                format!(
                    "cmd=maxes rc=0 kvsname_max={most_name} keylen_max={most_key} vallen_max={most_value}\n"
                )
            }
            "get_appnum" => "cmd=appnum rc=0 appnum=0\n".to_owned(),
            "get_my_kvsname" => format!("cmd=my_kvsname rc=0 kvsname={}\n", self.name),
            "get_universe_size" => format!("cmd=universe_size rc=0 size={}\n", self.tasks),
            "put" => {
                let pair = field("key").zip(field("value"));
                let fits = |(key, value): &(&str, &str)| key.len() <= most_key && value.len() <= most_value;
                let mut shared = self.shared();
                // One value is that of the space itself.
                let is_full = shared.values.len() as u64 > self.tasks.saturating_mul(MOST_KEYS);
                match pair.filter(fits).filter(|(key, _)| !is_full || shared.values.contains_key(*key)) {
                    Some((key, value)) => {
                        shared.values.insert(key.to_owned(), value.to_owned());
                        "cmd=put_result rc=0 msg=success\n".to_owned()
                    }
                    None => "cmd=put_result rc=-1 msg=invalid\n".to_owned(),
                }
            }
            "get" => {
                let shared = self.shared();
                match field("key").and_then(|key| shared.values.get(key)) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
                    None => "cmd=get_result rc=-1 msg=key_not_found\n".to_owned(),
                }
            }
            "barrier_in" => return Answer::Barrier,
            "finalize" => return Answer::Finalized,
            "abort" => return Answer::Abort,
            // Programs that start others, or publish names, learn that they cannot.
            other => format!("cmd={other}_result rc=-1 msg=not_supported\n"),
        })
    }
}

/// Sends a line. A task that has ended is found by the next reading.
fn send(mut socket: &UnixStream, line: &str) {
    let _ = socket.write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(socket: &mut BufReader<UnixStream>, line: &str) -> String {
        socket.get_mut().write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_line(&mut answer).unwrap();
        answer
    }

    #[test]
    fn tasks_exchange_values_at_a_barrier() {
        let space = Space::new("7", 1, 2);
        let task = || BufReader::new(UnixStream::from(space.serve().unwrap()));
        let (mut one, mut other) = (task(), task());
        assert_eq!(ask(&mut one, "cmd=get_universe_size\n"), "cmd=universe_size rc=0 size=2\n");
        assert_eq!(ask(&mut one, "cmd=get_my_kvsname\n"), "cmd=my_kvsname rc=0 kvsname=kvs_7_1\n");
        let put = "cmd=put kvsname=kvs_7_1 key=a value=b#c$=\n";
        assert_eq!(ask(&mut one, put), "cmd=put_result rc=0 msg=success\n");
        one.get_mut().write_all(b"cmd=barrier_in\ncmd=barrier_in\n").unwrap();
        assert_eq!(ask(&mut one, "cmd=get_appnum\n"), "cmd=appnum rc=0 appnum=0\n", "a task arrives once");
        assert_eq!(ask(&mut other, "cmd=barrier_in\n"), "cmd=barrier_out rc=0\n");
        let mut line = String::new();
        one.read_line(&mut line).unwrap();
        assert_eq!(line, "cmd=barrier_out rc=0\n");
        let get = |key| format!("cmd=get kvsname=kvs_7_1 key={key}\n");
        assert_eq!(ask(&mut other, &get("a")), "cmd=get_result rc=0 msg=success value=b#c$=\n");
        assert_eq!(ask(&mut other, &get("b")), "cmd=get_result rc=-1 msg=key_not_found\n");
        let mapping = ask(&mut other, &get("PMI_process_mapping"));
        assert_eq!(mapping, "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n");
        for task in [&mut one, &mut other] {
            assert_eq!(ask(task, "cmd=finalize\n"), "cmd=finalize_ack rc=0\n");
        }
    }

    #[test]
    fn a_task_that_leaves_the_others_ends_the_step() {
        let space = Space::new("7", 1, 2);
        let ended = |lines: &[&str]| {
            let (own, mut task) = UnixStream::pair().unwrap();
            for line in lines {
                task.write_all(line.as_bytes()).unwrap();
            }
            task.shutdown(Shutdown::Write).unwrap();
            space.answer_all(&Arc::new(own))
        };
        assert!(!ended(&[]), "no program of MPI");
        assert!(ended(&["cmd=init pmi_version=1\n"]));
        assert!(ended(&["cmd=init\n", "cmd=abort exitcode=3\n"]));
        assert!(!ended(&["cmd=init\n", "cmd=finalize\n"]));
        let line = "x".repeat(5000) + "\n";
        assert!(ended(&["cmd=init\n", &line[..], "cmd=finalize\n"]), "a line is too long");
        assert_eq!(
            space.answer("cmd=mcmd"),
            Answer::Line("cmd=mcmd_result rc=-1 msg=not_supported\n".to_owned())
        );
        let long = format!("cmd=put key=k value={}", "x".repeat(5000));
        assert_eq!(space.answer(&long), Answer::Line("cmd=put_result rc=-1 msg=invalid\n".to_owned()));
    }

    #[test]
    fn keys_have_a_most() {
        let space = Space::new("7", 1, 1);
        let is_stored = |key: u64| {
            let answer = space.answer(&format!("cmd=put key=k{key} value=v"));
            answer == Answer::Line("cmd=put_result rc=0 msg=success\n".to_owned())
        };
        assert!((0..MOST_KEYS).all(is_stored));
        assert!(!is_stored(MOST_KEYS));
        assert!(is_stored(0), "a key has another value");
    }

    #[test]
    fn the_sockets_are_closed() {
        let space = Space::new("7", 1, 2);
        let mut task = BufReader::new(UnixStream::from(space.serve().unwrap()));
        space.give_up();
        assert_eq!(task.read_line(&mut String::new()).unwrap(), 0);
        assert!(!space.has_ended(), "no task has used its socket");
    }
}
