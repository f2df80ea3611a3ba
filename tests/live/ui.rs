//! The live page: its link, its key, and a person before a real browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use miserly_api::model::Submission;
use miserly_test_support::browser::Browser;

use crate::support::{Daemon, SOON, miserly, sh, until};

/// A running `miserly ui`. It ends when this is dropped.
pub(crate) struct Ui {
    process: Child,
    output: BufReader<ChildStdout>,
    pub(crate) port: u16,
}

impl Ui {
    /// Starts the page of a daemon.
    pub(crate) fn of(daemon: &Daemon, options: &[&str]) -> Ui {
        Ui::start(
            Command::new(env!("CARGO_BIN_EXE_miserly"))
                .arg("ui")
                .arg("--socket")
                .arg(&daemon.socket)
                .args(options),
        )
    }

    /// Starts a page.
    pub(crate) fn start(command: &mut Command) -> Ui {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a program");
        let output = BufReader::new(process.stdout.take().expect("an output"));
        Ui { process, output, port: 0 }
    }

    /// Returns the next link that it prints.
    pub(crate) fn link(&mut self) -> String {
        let mut text = String::new();
        self.output.read_line(&mut text).expect("a link");
        let link = text.trim().to_owned();
        let address = link.strip_prefix("http://127.0.0.1:").expect("a link");
        let (port, _) = address.split_once('/').expect("a port");
        self.port = port.parse().expect("a port");
        link
    }

    /// Sends a request. Returns its status and its body.
    fn send(&self, head: &str, body: &str) -> (u16, String) {
        answer(TcpStream::connect(("127.0.0.1", self.port)).expect("a connection"), head, body)
    }

    /// Gets a path, with this line of the head in addition.
    fn get(&self, path: &str, more: &str) -> (u16, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{}{more}", self.port), "")
    }

    /// Uses a link. Returns the key.
    fn visit(&self, link: &str) -> String {
        let (_, path) = link.split_once("/?").expect("a token");
        let (status, page) = self.get(&format!("/?{path}"), "");
        assert_eq!(status, 200, "{page}");
        let (_, rest) = page.split_once("name=\"key\" content=\"").expect("a key");
        rest.split_once('"').expect("a key").0.to_owned()
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a request. Returns the status and the body of its answer.
fn answer(mut stream: TcpStream, head: &str, body: &str) -> (u16, String) {
    stream.set_read_timeout(Some(SOON)).expect("a limit");
    let length = body.len();
    write!(stream, "{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer)
}

fn named(name: &str, script: &str, time: f64) -> Submission {
    Submission { name: Some(name.to_owned()), ..sh(script, time) }
}

#[test]
fn a_link_works_once_and_only_its_key_opens_the_rest() {
    let daemon = Daemon::of_policy("conservative");
    let mut ui = Ui::of(&daemon, &[]);
    let link = ui.link();
    let (status, _) = ui.get("/?token=wrong", "");
    assert_eq!(status, 401, "a wrong token");
    let key = ui.visit(&link);
    let (status, page) = ui.get(&format!("/?{}", link.split_once("/?").expect("a token").1), "");
    assert_eq!(status, 401, "a used token");
    assert!(page.contains("This link does not work") && !page.contains("batch"));
    let next = ui.link();
    assert_ne!(next, link);

    let bearer = |key: &str| format!("\r\nauthorization: Bearer {key}");
    for path in [
        "/api/state",
        "/api/events",
        "/api/moment?at=0",
        "/api/lists?at=0",
        "/api/wants/1",
        "/api/offers",
        "/api/card/1",
        "/api/picture?from=0&scale=1&width=1&now=0&at=0&rows=1",
        "/api/jobs/1",
        "/api/jobs/1/dependencies",
        "/api/jobs/1/effect",
        "/api/jobs/1/log",
        "/api/arrays/1",
        "/api/arrays/1/effect",
    ] {
        assert_eq!(ui.get(path, "").0, 401, "{path} without a key");
        assert_eq!(ui.get(path, &bearer("wrong")).0, 401, "{path} with a wrong key");
    }
    let (status, state) = ui.get("/api/state", &bearer(&key));
    assert!(status == 200 && state.contains("\"batch\""), "{state}");
    let (status, page) = ui.get("/", "");
    assert!(status == 200 && !page.contains("batch"), "a page without a key has nothing of the machine");
    assert!(page.contains("content-security-policy: default-src 'none'"), "{page}");
}

#[test]
fn requests_of_other_sites_are_refused() {
    let daemon = Daemon::of_policy("conservative");
    let job = daemon.submit(&sh("sleep 600", 900.0));
    let mut ui = Ui::of(&daemon, &[]);
    let link = ui.link();
    let key = ui.visit(&link);
    let (port, bearer) = (ui.port, format!("authorization: Bearer {key}"));
    // A name that another site made point to this machine.
    let (status, body) =
        ui.send(&format!("GET /api/state HTTP/1.1\r\nhost: evil.example:{port}\r\n{bearer}"), "");
    assert!(status == 403 && !body.contains("batch"), "{body}");
    // A script of another site, even if it had the key.
    let own = format!("host: 127.0.0.1:{port}\r\n{bearer}");
    let cancel = format!("POST /api/jobs/{job} HTTP/1.1\r\n{own}");
    let body = r#"{"do": "cancel"}"#;
    let json = "content-type: application/json";
    let (status, _) = ui.send(&format!("{cancel}\r\n{json}\r\norigin: http://evil.example"), body);
    assert_eq!(status, 403);
    // A page of another port of this machine, which may be another user's.
    let other = if port == 1 { 2 } else { port - 1 };
    for origin in [format!("127.0.0.1:{other}"), format!("localhost:{port}"), "127.0.0.1".to_owned()] {
        let (status, _) = ui.send(&format!("{cancel}\r\n{json}\r\norigin: http://{origin}"), body);
        assert_eq!(status, 403, "{origin}");
    }
    // A form of another site has no JSON.
    assert_eq!(ui.send(&format!("{cancel}\r\ncontent-type: text/plain"), body).0, 415);
    assert_eq!(ui.send(&format!("{cancel}\r\n{json}"), r#"{"do": "destroy"}"#).0, 422);
    assert!(!crate::support::is_over(&daemon.job(job).phase), "nothing was done");
    // An ssh tunnel may have another port.
    let tunnel = format!("POST /api/jobs/{job} HTTP/1.1\r\nhost: localhost:9999\r\n{bearer}\r\n{json}");
    assert_eq!(ui.send(&format!("{tunnel}\r\norigin: http://localhost:9999"), body).0, 204);
    daemon.wait(job);
}

#[test]
fn a_proxy_with_the_secret_is_admitted() {
    let daemon = Daemon::of_policy("conservative");
    let file = daemon.path("secret");
    std::fs::write(&file, "0123456789abcdef\n").expect("a file");
    let file = file.display().to_string();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    let socket = daemon.socket.display().to_string();
    let refused = miserly(&["ui", "--socket", &socket, "--proxy-secret", &file]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && told.contains("chmod 600"), "{told}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let mut ui = Ui::of(&daemon, &["--proxy-secret", &file]);
    ui.link();
    let state = |secret: &str| {
        let head = format!("GET /api/state HTTP/1.1\r\nhost: jobs.example\r\nx-miserly-proxy: {secret}");
        ui.send(&head, "").0
    };
    assert_eq!((state("0123456789abcdef"), state("0123456789abcdeg"), state("")), (200, 403, 403));
    let of_page = |origin: &str| state(&format!("0123456789abcdef\r\norigin: {origin}"));
    assert_eq!((of_page("https://jobs.example"), of_page("https://evil.example")), (200, 403));
}

/// Returns the page without a daemon, and its key.
fn page_of(options: &[&str]) -> (Ui, String) {
    let mut ui = Ui::start(Command::new(env!("CARGO_BIN_EXE_miserly")).arg("ui").args(options));
    let link = ui.link();
    let key = ui.visit(&link);
    (ui, key)
}

/// Returns the first content of the stream of a page that wants these parts.
fn content(ui: &Ui, key: &str, wants: &str) -> serde_json::Value {
    let mut stream = TcpStream::connect(("127.0.0.1", ui.port)).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a limit");
    let (port, length) = (ui.port, wants.len());
    write!(
        stream,
        "POST /api/events?watcher=1 HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{wants}"
    )
    .expect("a request");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a line"));
    let event = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).expect("an event");
    let event: serde_json::Value = serde_json::from_str(&event).expect("JSON");
    event["patch"][0].clone()
}

#[test]
fn a_run_has_a_chart_for_each_policy_and_its_past() {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/L1.swf");
    let options = ["--run", log, "--policy", "easy", "--policy", "conservative"];
    let (ui, key) = page_of(&options);
    let tile = r#"{"group": 1, "from": 0, "column": 1000, "columns": 512, "bands": 4}"#;
    let content = content(&ui, &key, &format!(r#"{{"tiles": {{"a": {tile}}}}}"#));
    let (state, tile) = (&content["state"], &content["chart"]["tiles"]["a"]);
    let (status, early) = ui.get("/api/moment?at=150000", &format!("\r\nauthorization: Bearer {key}"));
    assert_eq!(status, 200, "{early}");
    let (_, early) = early.split_once("\r\n\r\n").expect("a body");
    let early: serde_json::Value = serde_json::from_str(early).expect("JSON");
    let names: Vec<&str> = state["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .filter_map(|group| group["name"].as_str())
        .collect();
    assert_eq!(names, ["easy", "conservative"]);
    assert_eq!((&state["moment"]["running_count"], &state["daemon"]), (&0.into(), &false.into()));
    assert_eq!((&early["running_count"], &early["waiting_count"]), (&2.into(), &4.into()), "{early}");
    assert!(tile["bars"].as_array().is_some_and(|bars| !bars.is_empty()), "{tile}");
    for (options, says) in [
        (vec!["--policy", "easy"], "needs --run"),
        (vec!["--run", log], "give a policy"),
        (vec!["--run", "absent.swf", "--policy", "easy"], "absent.swf"),
        (vec!["--journal", "/absent"], "/absent"),
    ] {
        let refused = miserly(&[vec!["ui"], options].concat());
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && told.contains(says), "{told}");
    }
}

#[test]
fn a_stored_state_has_its_finished_jobs() {
    let mut daemon = Daemon::of_policy("conservative");
    let job = daemon.submit(&named("stored", "true", 5.0));
    daemon.wait(job);
    daemon.stop();
    let state = daemon.state().display().to_string();
    let (ui, key) = page_of(&["--journal", &state]);
    let content = content(&ui, &key, r#"{"lists": {"count": 5}}"#);
    let row = &content["lists"]["ended"]["rows"][job.to_string()];
    assert_eq!((&row["name"], &row["word"]), (&"stored".into(), &"done".into()));
}

#[test]
fn a_read_only_page_changes_nothing_and_a_taken_port_is_told() {
    let daemon = Daemon::of_policy("conservative");
    let job = daemon.submit(&sh("sleep 600", 900.0));
    let mut ui = Ui::of(&daemon, &["--read-only"]);
    let link = ui.link();
    let key = ui.visit(&link);
    for path in ["", "/effect"] {
        let head = format!(
            "POST /api/jobs/{job}{path} HTTP/1.1\r\nhost: localhost:{}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json",
            ui.port
        );
        assert_eq!(ui.send(&head, r#"{"do": "cancel"}"#).0, 403, "{path}");
    }
    let port = ui.port.to_string();
    let second = miserly(&["ui", "--socket", &daemon.socket.display().to_string(), "--port", &port]);
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.code() == Some(2) && told.contains("give another --port"), "{told}");
    daemon.client().cancel(job, false).expect("it is cancelled");
}

#[test]
fn nobody_else_answers_for_localhost() {
    let Ok(others) = TcpListener::bind("[::1]:0") else { return };
    let daemon = Daemon::of_policy("conservative");
    let mut ui = Ui::of(&daemon, &[]);
    let link = ui.link();
    let (_, token) = link.split_once("/?").expect("a token");
    let head = format!("GET /?{token} HTTP/1.1\r\nhost: localhost:{}", ui.port);
    let (status, page) = answer(TcpStream::connect(("::1", ui.port)).expect("a connection"), &head, "");
    assert!(status == 200 && page.contains("name=\"key\""), "{page}");
    let port = others.local_addr().expect("an address").port();
    if TcpListener::bind(("127.0.0.1", port)).is_err() {
        return;
    }
    let socket = daemon.socket.display().to_string();
    let refused = miserly(&["ui", "--socket", &socket, "--port", &port.to_string()]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && told.contains(&format!("[::1]:{port}")), "{told}");
}

/// Requires a page without errors that fits its window.
pub(crate) fn is_clean(browser: &mut Browser) {
    assert_eq!(browser.console(), Vec::<String>::new());
    let overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.evaluate(overflow), 0);
}

#[test]
fn a_person_finds_the_answers_in_a_browser() {
    let Some(mut browser) = Browser::start() else { return };
    let mut daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    let comment = Some("<b>run 7</b>".to_owned());
    let holder =
        daemon.submit(&Submission { cpus, comment, ..named("holder", "echo first line; sleep 600", 900.0) });
    let evil = "<img src=x onerror=alert(1)>";
    let waiting = daemon.submit(&Submission { cpus, no_opportunistic: true, ..named(evil, "true", 60.0) });
    let mut ui = Ui::of(&daemon, &[]);
    let link = ui.link();
    browser.look(1280, "light");
    browser.open(&link);

    // When does mine start, and why not now?
    browser.wait_until("document.querySelectorAll('#waiting tbody button').length === 1");
    browser.click("#waiting tbody button");
    let sentence = browser.evaluate("document.querySelector('#sentence').textContent");
    let sentence = sentence.as_str().expect("a sentence");
    assert!(sentence.starts_with("starts by "), "{sentence}");
    assert!(sentence.contains(&format!("that job {holder} holds until")), "{sentence}");
    assert_eq!(browser.evaluate("document.querySelectorAll('img').length"), 0, "names are no markup");
    // Who holds the machine? What fits now?
    assert_eq!(browser.evaluate("document.querySelector('#running tbody td').textContent"), "holder");
    browser.click("#ask button");
    browser.wait_until("document.querySelector('#quoted').textContent.includes('promised a start by')");
    // The wheel over the chart scrolls the page.
    let place = browser.evaluate("(() => { scrollTo(0, 0); const b = document.querySelector('#chart').getBoundingClientRect(); return [b.x + 200, b.y + 30, chart.scale]; })()");
    browser.wheel(place[0].as_f64().expect("x"), place[1].as_f64().expect("y"), 100.0);
    browser.wait_until("scrollY > 0");
    assert_eq!(browser.evaluate("chart.scale"), place[2], "the chart has no focus");
    // The chart: drag, keys, a click on the running job.
    let from = "chart.from";
    let before = browser.evaluate(from).as_f64().expect("a time");
    let place = browser.evaluate("(() => { const c = document.querySelector('#chart'); c.scrollIntoView({ block: 'center' }); const b = c.getBoundingClientRect(); return [b.x + 200, b.y + chart.places[0].top + 4]; })()");
    let (x, y) = (place[0].as_f64().expect("x"), place[1].as_f64().expect("y"));
    browser.mouse("mousePressed", x, y);
    for step in 1..=5 {
        browser.drag(x + f64::from(20 * step), y);
    }
    browser.mouse("mouseReleased", x + 100.0, y);
    browser.wait_until(&format!("chart.from < {before}"));
    browser.evaluate("document.querySelector('#chart').focus()");
    browser.key("0");
    browser.wait_until("chart.follow === true");
    browser.key("+");
    browser.wait_until("chart.painted?.some(([data]) => data.bars.length > 0)");
    let hit = browser.evaluate(&format!("(() => {{ const b = document.querySelector('#chart').getBoundingClientRect(); for (const [data, place] of chart.painted) for (const [from, to, job, , , rows] of data.bars) if (job === {holder}) {{ const [left, right] = chart.across(from, to), [top, height] = chart.down(rows[0], place); return [b.x + (Math.max(left, 0) + Math.min(right, b.width)) / 2, b.y + top + height / 2]; }} }})()"));
    let (x, y) = (hit[0].as_f64().expect("x"), hit[1].as_f64().expect("y"));
    browser.mouse("mousePressed", x, y);
    browser.mouse("mouseReleased", x, y);
    browser.wait_until("document.querySelector('#detail h2').textContent.includes('holder')");
    browser.wait_until(
        "document.querySelector('#detail-facts').textContent.endsWith('; comment: <b>run 7</b>')",
    );
    is_clean(&mut browser);
    browser.screenshot("ui-light");

    // The map: its cells and its buttons show the job that holds all processors.
    browser.click("#waiting tbody button");
    browser.click("#map .cells [data-job]");
    browser.wait_until("document.querySelector('#detail h2').textContent.includes('holder')");
    let held = format!(
        "[...document.querySelectorAll('#map .holders button')].map(button => [button.textContent.startsWith('{holder} holder ('), button.tabIndex, button.getAttribute('aria-current')])"
    );
    assert_eq!(browser.evaluate(&held), serde_json::json!([[true, 0, "true"]]));
    let told = browser.evaluate("document.querySelector('#map .hosts p').textContent");
    assert!(
        told.as_str().is_some_and(|told| told.contains(&format!("{cpus} of {cpus} held, 0 free"))),
        "{told}"
    );
    let cells = "document.querySelectorAll('#map .cells span').length";
    assert_eq!(browser.evaluate(cells), cpus, "a cell for each processor");
    let title = "document.querySelector('#map .cells span').title.startsWith('processor ')";
    assert_eq!(browser.evaluate(title), true);
    is_clean(&mut browser);
    browser.screenshot("ui-map");

    // A reload in the middle needs no new link.
    browser.reload();
    browser.wait_until("document.querySelectorAll('#waiting tbody button').length === 1");
    assert_eq!(browser.evaluate("location.search"), "");
    // What the daemon says of the chosen job is read once.
    browser.wait_until("document.querySelector('#more').dataset.row !== undefined");
    // The daemon is killed, and comes back.
    daemon.kill();
    browser.wait_until("!document.querySelector('#problem').hidden");
    daemon.start();
    browser.wait_until("document.querySelector('#problem').hidden");

    // A phone, in the dark: a job is cancelled, after its effect is told.
    browser.look(375, "dark");
    browser.click("#running tbody button");
    browser.click("#detail .tools button");
    browser.wait_until("document.querySelector('#effect')?.textContent.startsWith('End job ')");
    let moves = browser.evaluate("document.querySelector('#moves').textContent");
    let moves = moves.as_str().expect("a text");
    assert!(moves.contains("no promise; before: has started, ends by "), "{moves}");
    assert!(moves.contains(&format!("other promises that move: 1\n  job {waiting}: from ")), "{moves}");
    is_clean(&mut browser);
    browser.screenshot("ui-phone-dark");
    browser.click("#confirm");
    browser.wait_until("document.querySelectorAll('#ended tbody tr').length === 2");
    daemon.wait(waiting);
    is_clean(&mut browser);
}

#[test]
fn a_large_machine_is_shown_in_groups() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log.swf").display().to_string();
    let made = miserly(&["workload", "generate", "--jobs", "300", "--procs", "2048", "-o", &log]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut ui = Ui::start(
        Command::new(env!("CARGO_BIN_EXE_miserly")).args(["ui", "--run", &log, "--policy", "easy"]),
    );
    let link = ui.link();
    browser.look(1280, "light");
    browser.open(&link);
    browser.wait_until("globalThis.shownVersion >= 0");
    browser.evaluate("document.querySelector('#processors').scrollIntoView()");
    browser
        .wait_until("document.querySelector('#map h3')?.textContent === 'easy 2048 processors in 64 groups'");
    browser.evaluate(
        "(() => { const s = document.querySelector('#slider'); s.value = Math.ceil(s.max / 2); s.dispatchEvent(new Event('input')); })()",
    );
    browser.wait_until("document.querySelectorAll('#map .holders button').length > 0");
    let groups = "[...document.querySelectorAll('#map li')].map(group => [/^\\d+-\\d+ \\d+ of 32 held \\(\\d+ %\\)/.test(group.textContent), group.querySelectorAll('.holders button').length <= 6])";
    let found = browser.evaluate(groups);
    let found = found.as_array().expect("groups");
    assert!(
        found.len() == 64 && found.iter().all(|group| *group == serde_json::json!([true, true])),
        "{found:?}"
    );
    is_clean(&mut browser);
}

/// Returns the heights of a chart with very many rows, and of one with very many groups.
const HEIGHTS: &str = r"
    (() => {
        const before = chart.groups, group = rows => ({ name: 'many', rows, unit: 1, procs: rows });
        const height = groups => { chart.groups = groups; chart.place(); return chart.canvas.clientHeight; };
        const found = [height([group(1e6)]), height(Array(1000).fill(group(4)))];
        height(before);
        return found;
    })()";

/// Makes requests to a path fail, or succeed again.
fn break_requests(browser: &mut Browser, path: Option<&str>) {
    let path = path.map_or_else(|| "null".to_owned(), |path| format!("'{path}'"));
    browser.evaluate(&format!(
        "(() => {{ globalThis.honest ??= fetch; const broken = {path}; globalThis.fetch = (path, ...more) => \
         broken && path.startsWith(broken) ? Promise.reject(new Error('no route')) : honest(path, ...more); }})()"
    ));
}

#[test]
fn a_new_state_keeps_what_a_person_does() {
    let Some(mut browser) = Browser::start() else { return };
    let daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    let whole = |name: &str| Submission { cpus, no_opportunistic: true, ..named(name, "sleep 600", 900.0) };
    let [holder, second, third] = ["holder", "second", "third"].map(|name| daemon.submit(&whole(name)));
    let mut ui = Ui::of(&daemon, &[]);
    let link = ui.link();
    browser.look(1280, "light");
    browser.open(&link);
    browser.wait_until("document.querySelectorAll('#waiting tbody button').length === 2");

    // The focus, a number and an answer stay when another job comes.
    browser.click("#waiting tbody tr:nth-child(2) button");
    browser.wait_until("document.querySelector('#waiting tr[aria-current=\"true\"]') !== null");
    browser.evaluate(
        "document.querySelector('#ask-procs').value = 2; document.querySelector('#ask-minutes').value = 7",
    );
    browser.click("#ask button");
    browser.wait_until("document.querySelector('#quoted').textContent.includes('--time 7min')");
    browser.evaluate("(globalThis.held = document.querySelector('#detail .tools button')).focus()");
    let fourth = daemon.submit(&whole("fourth"));
    browser.wait_until("document.querySelectorAll('#waiting tbody tr').length === 3");
    let kept = "held === document.activeElement && held.textContent === 'Hold'";
    assert_eq!(browser.evaluate(kept), true, "the button keeps the focus");
    let form = "[document.querySelector('#ask-procs').value, document.querySelector('#quoted').textContent.includes('7min')]";
    assert_eq!(browser.evaluate(form), serde_json::json!(["2", true]));
    // A row keeps the focus when the one before it goes.
    let row = format!("#waiting tr[data-job='{third}'] button");
    browser.evaluate(&format!("document.querySelector(\"{row}\").focus()"));
    daemon.client().cancel(second, false).expect("it is cancelled");
    browser.wait_until("document.querySelectorAll('#waiting tbody button').length === 2");
    assert_eq!(browser.evaluate("document.activeElement.textContent"), third.to_string());
    // The chosen job starts: its sentence and its buttons change, and a question on the old state is withdrawn.
    browser.click("#detail .tools button");
    browser.wait_until("document.querySelector('#result p').textContent.startsWith('Hold job ')");
    daemon.client().cancel(holder, false).expect("it is cancelled");
    browser.wait_until("document.querySelector('#detail .tools').textContent.includes('Extend')");
    browser.wait_until("document.querySelector('#sentence').textContent.startsWith('runs since')");
    browser.wait_until("document.querySelector('#result').textContent.includes('nothing was done')");
    browser.screenshot("ui-chosen");

    // A part of the chart that failed comes after a while.
    break_requests(&mut browser, Some("/api/wants"));
    browser.evaluate("chart.zoom(0.1)");
    browser.wait_until("[...chart.tiles.values()].some(tile => tile.pause > 0)");
    break_requests(&mut browser, None);
    // The chart follows the present. A part that has left the view is not asked for again.
    browser.wait_until("[...chart.tiles.values()].slice(-chart.visible).every(tile => tile.pause === 0)");
    // An end in thousands of years.
    browser.evaluate("chart.range = [chart.now, chart.now + 1e15]; chart.fit()");
    assert_eq!(browser.evaluate("chart.scale * chart.width() < 1.1 * 31536e6"), true);
    browser.evaluate("chart.goLive()");
    // Very many rows, or groups, on a canvas that a browser can paint.
    let heights = browser.evaluate(HEIGHTS);
    assert!(
        heights.as_array().expect("heights").iter().all(|height| height.as_f64() < Some(8001.0)),
        "{heights}"
    );
    // An instant that cannot be shown is not taken for shown.
    let slide = "(() => { const s = document.querySelector('#slider'); s.value = Math.ceil(s.max / 2) - 1; s.dispatchEvent(new Event('input')); })()";
    break_requests(&mut browser, Some("/api/moment"));
    browser.evaluate(slide);
    browser.wait_until("document.querySelector('#problem').textContent.includes('no route')");
    assert_eq!(browser.evaluate("document.querySelector('#now').textContent.includes('past')"), false);
    daemon.client().cancel(fourth, false).expect("it is cancelled");
    browser.wait_until("document.querySelectorAll('#waiting tbody tr').length === 0");
    assert_eq!(browser.evaluate("document.querySelector('#problem').hidden"), false, "it is still told");
    break_requests(&mut browser, None);
    browser.evaluate(slide);
    browser.wait_until("document.querySelector('#now').textContent.includes('(in the past)')");
    assert_eq!(browser.evaluate("document.querySelector('#problem').hidden"), true);
    let note = browser.evaluate("document.querySelector('#note').textContent");
    assert!(note.as_str().is_some_and(|note| note.contains("no forecast at an earlier instant")), "{note}");
    let same = "document.querySelector('#now').textContent === document.querySelector('#instant').textContent + ' (in the past)'";
    assert_eq!(browser.evaluate(same), true, "the slider has the same instant");
    // Keys move by a step. There are never many.
    let place = "+document.querySelector('#slider').value";
    let before = browser.evaluate(place).as_f64().expect("a place");
    browser.evaluate("document.activeElement.blur()");
    browser.key(",");
    browser.wait_until(&format!("{place} === {before} - 1"));
    browser.key(".");
    browser.wait_until(&format!("{place} === {before}"));
    assert_eq!(browser.evaluate("+document.querySelector('#slider').max <= 301"), true);
    browser.click("#live");
    browser.wait_until("!document.querySelector('#now').textContent.includes('past')");
    is_clean(&mut browser);

    // A server that is silent, as behind a frozen tunnel; the limit is shortened.
    browser.evaluate("(() => { const real = setTimeout; globalThis.setTimeout = (act, time) => real(act, time === 45e3 ? 500 : time); })()");
    daemon.client().cancel(third, false).expect("it is cancelled");
    browser.wait_until("document.querySelectorAll('#running tbody tr').length === 0");
    let process = rustix::process::Pid::from_child(&ui.process);
    rustix::process::kill_process(process, rustix::process::Signal::STOP).expect("a process");
    browser.wait_until("document.querySelector('#problem').textContent.includes('the server is silent')");
    rustix::process::kill_process(process, rustix::process::Signal::CONT).expect("a process");
    browser.wait_until("document.querySelector('#problem').hidden");
}

/// Opens a page from an empty one. Returns the milliseconds until all of it has come, and until its first paint.
fn visit(browser: &mut Browser, link: &str) -> [u64; 2] {
    browser.open("about:blank");
    browser.open(link);
    browser.wait_until("performance.getEntriesByType('paint').length > 0");
    let times = "[performance.getEntriesByType('navigation')[0].responseEnd, performance.getEntriesByType('paint')[0].startTime].map(Math.round)";
    serde_json::from_value(browser.evaluate(times)).expect("two times")
}

/// The reach of a page: prints the times of the first paint, of an event until it is shown, and of frames with a million jobs.
/// Run it in release with `MISERLY_UI_LOG`, a log that `miserly workload generate` made.
#[test]
#[ignore = "a measurement; .ci/testing.md has its command"]
fn measured_times_of_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let daemon = Daemon::of_policy("conservative");
    let mut ui = Ui::of(&daemon, &[]);
    browser.look(1280, "light");
    // The first visit is that of a browser that has just started.
    let visits: Vec<[u64; 2]> = (0..21).map(|_| visit(&mut browser, &ui.link())).collect();
    println!("first visit, ms until the page has come and until the first paint: {:?}", visits[0]);
    for (what, which) in [("the page has come", 0), ("the first paint", 1)] {
        let mut times: Vec<u64> = visits[1..].iter().map(|visit| visit[which]).collect();
        times.sort_unstable();
        println!("20 more visits, ms until {what}: {times:?}");
    }
    browser.wait_until("globalThis.shownVersion >= 0");
    let mut times: Vec<u128> = vec![];
    for number in 0..20 {
        // The page changes four times a second on average, and a person does not submit more often.
        std::thread::sleep(Duration::from_secs(1));
        let began = crate::support::now();
        daemon.submit(&named(&format!("seen-{number}"), "true", 1.0));
        let shown = format!("document.body.textContent.includes('seen-{number}')");
        until("the job is shown", SOON, || (browser.evaluate(&shown) == true).then_some(()));
        times.push(began.elapsed().as_millis());
    }
    times.sort_unstable();
    println!("submission until it is on the screen, ms: median {}, most {}", times[10], times[19]);
    let Ok(log) = std::env::var("MISERLY_UI_LOG") else { return };
    let mut ui = Ui::start(
        Command::new(env!("CARGO_BIN_EXE_miserly")).args(["ui", "--run", &log, "--policy", "easy"]),
    );
    let link = ui.link();
    std::thread::sleep(Duration::from_secs(1));
    browser.open(&link);
    browser.wait_until("globalThis.shownVersion >= 0");
    println!("jobs in the chart: {}", browser.evaluate("chart.groups[0].rows + ' rows'"));
    let frames = browser.evaluate(FRAMES);
    println!("frames while it is dragged and zoomed, ms: {frames}");
}

/// Drags and zooms for six seconds. Returns the times between frames and of the painting.
const FRAMES: &str = r"
    (async () => {
        chart.fit();
        await new Promise(done => setTimeout(done, 2000));
        chart.frames.length = 0;
        const between = [];
        let last = performance.now();
        for (let frame = 0; frame < 360; frame++) {
            if (frame % 60 < 20) chart.zoom(frame < 180 ? 0.93 : 1.07, 400); else chart.pan(frame % 120 < 60 ? 9 : -9);
            await new Promise(requestAnimationFrame);
            between.push(performance.now() - last);
            last = performance.now();
        }
        const of = (list, share) => +list.toSorted((a, b) => a - b)[Math.floor((list.length - 1) * share)].toFixed(1);
        return { between: [0.5, 0.95, 1].map(share => of(between, share)), painting: [0.5, 0.95, 1].map(share => of(chart.frames, share)) };
    })()";
