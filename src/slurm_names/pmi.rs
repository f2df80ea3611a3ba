//! The first process-management interface of MPICH (PMI-1), by which the tasks of a step find each other.
//!
//! Each task has a socket, on which it sends lines such as `cmd=put key=K value=V`, and gets one line for each.
//! Between two barriers all tasks store what the others read.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::getpid;

/// The longest name of a space of keys, the longest key and the longest value.
const MOST: [usize; 3] = [256, 64, 4096];

/// The space that all tasks of a step share.
pub(super) struct Space {
    name: String,
    tasks: u64,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    values: BTreeMap<String, String>,
    /// The sockets of the tasks that wait at a barrier.
    waiting: Vec<UnixStream>,
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
        let shared = Shared { values: BTreeMap::from([mapping]), waiting: vec![] };
        Arc::new(Space { name, tasks, shared: Mutex::new(shared) })
    }

    /// Starts to serve a task. Returns its end of the socket, which it inherits.
    ///
    /// # Errors
    /// If the kernel refuses a socket or a thread.
    pub(super) fn serve(self: &Arc<Space>) -> std::io::Result<OwnedFd> {
        let (own, of_task) = UnixStream::pair()?;
        let space = Arc::clone(self);
        let serve = move || {
            if space.answer_all(&own) {
                // The reader of signals passes it on to all tasks.
                let _ = kill(getpid(), Signal::SIGTERM);
            }
        };
        std::thread::Builder::new().stack_size(256 << 10).spawn(serve)?;
        Ok(of_task.into())
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
    fn answer_all(&self, socket: &UnixStream) -> bool {
        let mut used = false;
        for line in BufReader::new(socket).lines() {
            let Ok(line) = line else { break };
            used = true;
            let answer = self.answer(&line);
            match &answer {
                Answer::Line(text) => send(socket, text),
                Answer::Barrier => self.arrive(socket.try_clone().ok()),
                Answer::Finalized => {
                    send(socket, "cmd=finalize_ack rc=0\n");
                    return false;
                }
                Answer::Abort => return true,
            }
        }
        used
    }

    /// Lets all tasks go on once the last one has arrived.
    fn arrive(&self, socket: Option<UnixStream>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.waiting.extend(socket);
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
                match pair.filter(fits) {
                    Some((key, value)) => {
                        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                        shared.values.insert(key.to_owned(), value.to_owned());
                        "cmd=put_result rc=0 msg=success\n".to_owned()
                    }
                    None => "cmd=put_result rc=-1 msg=invalid\n".to_owned(),
                }
            }
            "get" => {
                let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
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
        one.get_mut().write_all(b"cmd=barrier_in\n").unwrap();
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
            task.shutdown(std::net::Shutdown::Write).unwrap();
            space.answer_all(&own)
        };
        assert!(!ended(&[]), "no program of MPI");
        assert!(ended(&["cmd=init pmi_version=1\n"]));
        assert!(ended(&["cmd=init\n", "cmd=abort exitcode=3\n"]));
        assert!(!ended(&["cmd=init\n", "cmd=finalize\n"]));
        assert_eq!(
            space.answer("cmd=mcmd"),
            Answer::Line("cmd=mcmd_result rc=-1 msg=not_supported\n".to_owned())
        );
        let long = format!("cmd=put key=k value={}", "x".repeat(5000));
        assert_eq!(space.answer(&long), Answer::Line("cmd=put_result rc=-1 msg=invalid\n".to_owned()));
    }
}
