//! The reach of the page with facts from a program: its nodes, its long tasks, the bytes of a watcher, and the processor time of many.
//!
//! `cargo test --release -p miserly-ui --test measured -- --ignored --nocapture measured` prints the tables.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_follow::Board;
use miserly_test_support::browser::Browser;
use miserly_ui::{Options, Server};
use miserly_view::{Account, Clock, Facts, Job, PoolFacts, State};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The time between two changes of the facts.
const CHANGES_EVERY: i64 = 250;

/// The time over which bytes and processor time are counted.
const MEASURED: Duration = Duration::from_secs(20);

const UID: u32 = 1000;

/// The time limit of each job, milliseconds.
const LIMIT: i64 = 3_600_000;

/// A queue of jobs, of which the first ones run, and one ends at each step.
#[derive(Clone, Copy)]
struct Queue {
    jobs: i64,
    /// The jobs of an array; 1 for single jobs.
    array: i64,
    cpus: i64,
}

impl Queue {
    /// Returns the queue of three numbers.
    fn parse(text: &str) -> Queue {
        let numbers: Vec<i64> = text.split(' ').map(|number| number.parse().unwrap()).collect();
        Queue { jobs: numbers[0], array: numbers[1], cpus: numbers[2] }
    }

    fn job(&self, place: i64, step: i64, begin: i64) -> Job {
        let number = place + 1;
        let index = u32::try_from(place % self.array).unwrap();
        let array = (self.array > 1).then_some((number - i64::from(index), index));
        let label = array.map_or_else(|| number.to_string(), |(array, index)| format!("{array}[{index}]"));
        let own = self.array > 1 || place % 3 == 0;
        let start = begin + (place - self.cpus) * CHANGES_EVERY;
        let job = Job {
            number,
            label,
            array,
            name: format!("simulate-sample-{}", place / self.array),
            user: if own { "me" } else { "other" }.to_owned(),
            uid: Some(if own { UID } else { 1 }),
            procs: 1,
            memory: 1 << 30,
            limit: LIMIT,
            submitted: begin - 60_000,
            ..Job::default()
        };
        let started = |state, word: &str, end| Job {
            state,
            word: word.to_owned(),
            start: Some(start),
            end: Some(end),
            promised_first: Some(start),
            ..job.clone()
        };
        let end = begin + place * CHANGES_EVERY;
        match place {
            _ if place < step => started(State::Ended, "done", end),
            _ if place < step + self.cpus => started(State::Running, "running", end + LIMIT),
            _ => {
                // As if each job before it used all of its time.
                let promised = Some(begin + place / self.cpus * LIMIT + place % self.cpus * CHANGES_EVERY);
                Job { word: "queued".to_owned(), promised, promised_first: promised, ..job }
            }
        }
    }

    fn facts(&self, jobs: Vec<Arc<Job>>) -> Facts {
        let cpus = self.cpus.unsigned_abs();
        let pool = PoolFacts {
            name: "batch".to_owned(),
            policy: "conservative".to_owned(),
            promises: "all".to_owned(),
            cpus,
            held: cpus,
            ..PoolFacts::default()
        };
        Facts {
            now: Timestamp::now().as_millisecond(),
            clock: Clock::Wall(TimeZone::UTC),
            title: "measured".to_owned(),
            live: true,
            earlier: false,
            uid: Some(UID),
            pools: vec![pool],
            jobs,
            account: Account { promises: 300, kept: 206, open: 94, ..Account::default() },
        }
    }
}

/// Serves the page of a queue, with four changes a second, until the process ends. The measurement starts it.
#[test]
#[ignore = "the server of the measurements"]
fn serve() {
    let Ok(queue) = std::env::var("MEASURED_QUEUE") else { return };
    let queue = Queue::parse(&queue);
    let begin = Timestamp::now().as_millisecond();
    let mut jobs: Vec<Arc<Job>> = (0..queue.jobs).map(|place| Arc::new(queue.job(place, 0, begin))).collect();
    let board = Board::new(queue.facts(jobs.clone()));
    let server = Server::bind(Options::default()).unwrap();
    println!("\nlink {}", server.link());
    let posted = board.clone();
    std::thread::spawn(move || {
        for step in 1.. {
            std::thread::sleep(Duration::from_millis(CHANGES_EVERY.unsigned_abs()));
            // One ends, one starts; of single jobs one is submitted.
            if queue.array == 1 {
                jobs.push(Arc::new(queue.job(queue.jobs + step - 1, step, begin)));
            }
            for place in [step - 1, step - 1 + queue.cpus] {
                if let Some(job) = jobs.get_mut(usize::try_from(place).unwrap()) {
                    *job = Arc::new(queue.job(place, step, begin));
                }
            }
            posted.post(queue.facts(jobs.clone()));
        }
    });
    server.run(&board, |_| {}).unwrap();
}

/// A server in a process of its own. It ends when this is dropped.
struct Serving {
    process: Child,
    /// Kept open: the server prints its links.
    _output: BufReader<ChildStdout>,
    link: String,
}

impl Serving {
    fn start(queue: &str) -> Serving {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "serve"])
            .env("MEASURED_QUEUE", queue)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("link ") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the server has ended");
        }
        Serving { process, _output: output, link: line["link ".len()..].trim().to_owned() }
    }

    fn address(&self) -> &str {
        self.link.strip_prefix("http://").unwrap().split_once('/').unwrap().0
    }

    /// Returns the used processor time.
    fn used(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let (_, fields) = text.rsplit_once(')').unwrap();
        let fields = fields.split_whitespace().skip(11).take(2);
        // A hundred ticks a second, on each machine.
        Duration::from_millis(fields.map(|field| 10 * field.parse::<u64>().unwrap()).sum())
    }

    fn memory(&self) -> String {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Follows the events as pages that want the same. Returns the bytes of each second of one, the messages, and the share of a processor.
fn watch(serving: &Serving, key: &str, wants: &str, watchers: u64) -> (f64, u64, f64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (bytes, messages) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    for watcher in 0..watchers {
        let (address, bytes, messages) =
            (serving.address().to_owned(), Arc::clone(&bytes), Arc::clone(&messages));
        let request = format!(
            "POST /api/events?watcher={watcher} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
             accept-encoding: gzip\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{wants}",
            wants.len()
        );
        runtime.spawn(async move {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut buffer = vec![0; 1 << 16];
            loop {
                let read = stream.read(&mut buffer).await.unwrap();
                assert!(read > 0, "the stream has ended");
                bytes.fetch_add(read as u64, Ordering::Relaxed);
                messages.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    std::thread::sleep(Duration::from_secs(5));
    let count = || (bytes.load(Ordering::Relaxed), messages.load(Ordering::Relaxed));
    let (begun, used, before) = (Instant::now(), serving.used(), count());
    std::thread::sleep(MEASURED);
    let (wall, used, after) = (begun.elapsed().as_secs_f64(), serving.used().saturating_sub(used), count());
    runtime.shutdown_background();
    #[allow(clippy::cast_precision_loss)]
    let each = (after.0 - before.0) as f64 / wall / watchers as f64;
    (each, (after.1 - before.1) / watchers, used.as_secs_f64() / wall)
}

const QUEUES: [(&str, &str); 3] = [
    ("170 single jobs, 56 processors", "170 1 56"),
    ("4 000 own jobs in one array", "4000 4000 64"),
    ("100 000 own jobs in arrays of 4 000", "100000 4000 512"),
];

/// Whether rows and bars are on the screen.
const IS_SHOWN: &str =
    "document.querySelectorAll('#waiting tbody tr').length > 0 && chart.painted?.length > 0";

/// Returns the nodes, the height, the number and the longest of the long tasks from the load on and in 20 s, their sum, and the bytes of the page.
const BUSY: &str = "(async () => { const tasks = [];
    new PerformanceObserver(list => tasks.push(...list.getEntries().map(entry => Math.round(entry.duration)))).observe({ type: 'longtask', buffered: true });
    await new Promise(done => setTimeout(done, 20000));
    const page = performance.getEntriesByType('navigation')[0].encodedBodySize;
    return [document.getElementsByTagName('*').length, document.documentElement.scrollHeight, tasks.length, Math.max(0, ...tasks),
        tasks.reduce((sum, task) => sum + task, 0), page]; })()";

#[test]
#[ignore = "a measurement; the head of the file has its command"]
fn measured_reach_of_the_page() {
    println!("| queue | nodes | height, px | long tasks in 20 s | longest, ms | sum, ms | page, bytes |");
    for (what, queue) in QUEUES {
        let serving = Serving::start(queue);
        let Some(mut browser) = Browser::start() else { return };
        browser.look(1280, "light");
        browser.open(&serving.link);
        browser.wait_until(IS_SHOWN);
        let found = browser.evaluate(BUSY);
        let found: Vec<String> = found.as_array().unwrap().iter().map(ToString::to_string).collect();
        println!("| {what} | {} |", found.join(" | "));
    }
    println!("\n| queue | watchers | bytes a second of one | messages in 20 s | % of a processor | memory |");
    for (what, queue) in QUEUES {
        let Some(mut browser) = Browser::start() else { return };
        let serving = Serving::start(queue);
        browser.look(1280, "light");
        browser.open(&serving.link);
        browser.wait_until(IS_SHOWN);
        std::thread::sleep(Duration::from_secs(2));
        let [wants, key] = ["JSON.stringify(wants())", "sessionStorage.getItem('key')"]
            .map(|text| browser.evaluate(text).as_str().unwrap().to_owned());
        drop(browser);
        for watchers in [1, 1000] {
            let (bytes, messages, share) = watch(&serving, &key, &wants, watchers);
            let memory = serving.memory();
            println!("| {what} | {watchers} | {bytes:.0} | {messages} | {:.1} | {memory} |", 100.0 * share);
        }
    }
}
