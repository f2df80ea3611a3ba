//! A browser without a window, driven through its developer tools.

// A browser that cannot be controlled fails the test.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

use crate::Requirement;

/// A running browser with one page. It ends when this is dropped.
pub struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    calls: u64,
    /// Messages that the browser sent by itself: console, errors, loads.
    events: Vec<Value>,
    /// An empty profile, independent of user settings.
    profile: TempDir,
}

/// Scrolls to an element, waits until it rests for three frames, and returns its middle. Notes whether it is clicked.
const STILL: &str = r"async selector => {
    const found = document.querySelector(selector), place = () => JSON.stringify(found.getBoundingClientRect());
    found.scrollIntoView({ block: 'center' });
    for (let rested = 0, last = ''; rested < 3; rested = place() === last ? rested + 1 : 0) {
        last = place();
        await new Promise(requestAnimationFrame);
    }
    globalThis.wasClicked = false;
    found.addEventListener('click', () => { globalThis.wasClicked = true; }, { capture: true, once: true });
    const box = found.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
}";

/// How long any one thing may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// An expression of the functions `painted(chart)` and `drawn(svg, rules)`: the rectangles of the bars that each painter of a scene draws.
pub const PAINTERS: &str = include_str!("painters.js");

/// Requires that each rectangle of one painter is one of the other: `[painted, drawn]` by [`PAINTERS`]. Returns those of the canvas.
#[track_caller]
pub fn check_painters(found: &Value) -> Vec<Value> {
    let lists = [&found[0], &found[1]].map(|list| list.as_array().expect("rectangles").clone());
    let near = |one: &Value, other: &Value| {
        let close =
            |place: usize| (one[place].as_f64().unwrap() - other[place].as_f64().unwrap()).abs() < 0.02;
        one[0] == other[0] && (1..6).all(close)
    };
    for (these, others) in [(&lists[0], &lists[1]), (&lists[1], &lists[0])] {
        for rectangle in these {
            assert!(others.iter().any(|other| near(rectangle, other)), "{rectangle} is missing: {others:?}");
        }
    }
    let [painted, _] = lists;
    painted
}

impl Browser {
    /// Starts the browser, or prints that there is none.
    ///
    /// # Panics
    /// There is none and `MISERLY_REQUIRE_BROWSER` is 1, or it cannot be controlled.
    pub fn start() -> Option<Browser> {
        let Some(program) = program() else {
            let missing = "no Chromium found: install it, or name it in MISERLY_BROWSER";
            Requirement::Browser.is_met(false, missing);
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let process = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args(["--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Its processes sleep together.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut process = Guard(Some(process));
        let socket = connect(profile.path());
        let process = process.0.take().unwrap();
        let mut browser = Browser { process, socket, session: None, calls: 0, events: Vec::new(), profile };
        browser.open_page();
        Some(browser)
    }

    fn open_page(&mut self) {
        let target = self.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached =
            self.call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
    }

    /// Stops all its processes, as when the computer goes to sleep, or lets them go on.
    pub fn sleep(&mut self, sleeps: bool) {
        let signal = if sleeps { "-STOP" } else { "-CONT" };
        let group = format!("-{}", self.process.id());
        let status = Command::new("kill").args([signal, "--", &group]).status().unwrap();
        assert!(status.success(), "a signal to a process group");
    }

    /// Makes the page's window so wide, and the system light or dark.
    pub fn look(&mut self, width: u32, theme: &str) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Lays the page out as it is printed, though the system is dark.
    pub fn print(&mut self) {
        let features = json!([{ "name": "prefers-color-scheme", "value": "dark" }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "media": "print", "features": features }));
    }

    /// Prints the page as PDF in the size that it wants. Returns the number of pages, and the width and the height of one in points.
    pub fn pdf(&mut self) -> [f64; 3] {
        let answer =
            self.call("Page.printToPDF", &json!({ "preferCSSPageSize": true, "printBackground": true }));
        let data = answer["data"].as_str().unwrap();
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let boxes: Vec<&str> = text.split("/MediaBox").skip(1).collect();
        let numbers = boxes[0].split(['[', ']']).nth(1).unwrap().split_whitespace();
        let sides: Vec<f64> = numbers.skip(2).map(|number| number.parse().unwrap()).collect();
        [boxes.len() as f64, sides[0], sides[1]]
    }

    /// Whether scripts run on the pages that are loaded from now on.
    pub fn scripts(&mut self, run: bool) {
        self.call("Emulation.setScriptExecutionDisabled", &json!({ "value": !run }));
    }

    /// Loads a page and waits until it has.
    pub fn load(&mut self, html: &str) {
        let file = self.profile.path().join("page.html");
        fs::write(&file, html).unwrap();
        self.events.clear();
        self.call("Page.navigate", &json!({ "url": format!("file://{}", file.display()) }));
        self.wait_for_load();
    }

    /// Opens an address and waits until the page is loaded.
    pub fn open(&mut self, address: &str) {
        self.events.clear();
        self.call("Page.navigate", &json!({ "url": address }));
        self.wait_for_load();
    }

    /// Loads the page again.
    pub fn reload(&mut self) {
        self.events.clear();
        self.call("Page.reload", &json!({}));
        self.wait_for_load();
    }

    fn wait_for_load(&mut self) {
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.read();
            self.events.push(message);
        }
    }

    /// Waits until an expression is true, and panics with the text of the page if it never is.
    #[track_caller]
    pub fn wait_until(&mut self, expression: &str) {
        for _ in 0..600 {
            if self.evaluate(expression) == json!(true) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let text = self.evaluate("document.body.innerText");
        panic!("never: {expression}\n{text}");
    }

    /// Presses and releases a key, such as `ArrowLeft` or `+`.
    pub fn key(&mut self, key: &str) {
        let text = if key == "Enter" { Some("\r") } else { (key.len() == 1).then_some(key) };
        for kind in ["keyDown", "keyUp"] {
            let mut arguments = json!({ "type": kind, "key": key });
            if let Some(text) = text.filter(|_| kind == "keyDown") {
                arguments["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", &arguments);
        }
    }

    /// Clicks the middle of an element. If the page moved it away from under the mouse, clicks again, as a person does.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        for _ in 0..20 {
            let place = self.evaluate(&format!("({STILL})({})", json!(selector)));
            let (x, y) = (place[0].as_f64().expect(selector), place[1].as_f64().expect(selector));
            for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
                self.mouse(kind, x, y);
            }
            if self.evaluate("globalThis.wasClicked") == json!(true) {
                return;
            }
        }
        panic!("{selector} was never under the mouse");
    }

    /// Evaluates an expression on the page and awaits a promise.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let arguments = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &arguments);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Moves, presses or releases the mouse.
    pub fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let arguments = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", &arguments);
    }

    /// Turns the wheel by a number of pixels; a positive number is down.
    pub fn wheel(&mut self, x: f64, y: f64, down: f64) {
        let arguments = json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": down });
        self.call("Input.dispatchMouseEvent", &arguments);
    }

    /// Moves the mouse with its button pressed.
    pub fn drag(&mut self, x: f64, y: f64) {
        let arguments = json!({ "type": "mouseMoved", "x": x, "y": y, "button": "left", "buttons": 1 });
        self.call("Input.dispatchMouseEvent", &arguments);
    }

    /// Returns the console output since the page was loaded: messages, warnings, errors,
    /// exceptions.
    pub fn console(&self) -> Vec<String> {
        let loud = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
        let shown = self.events.iter().filter(|event| loud.iter().any(|name| event["method"] == *name));
        shown.map(|event| event["params"].to_string()).collect()
    }

    /// Returns the page as a screen reader has it: the role, the name and the description of each node that it reads.
    pub fn read_aloud(&mut self) -> Vec<[String; 3]> {
        let tree = self.call("Accessibility.getFullAXTree", &json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] == false);
        let text = |value: &Value| value["value"].as_str().map_or_else(String::new, str::to_owned);
        nodes.map(|node| [text(&node["role"]), text(&node["name"]), text(&node["description"])]).collect()
    }

    /// Saves a screenshot of the whole page in the folder `MISERLY_SCREENSHOTS`, if it is set.
    pub fn screenshot(&mut self, name: &str) {
        let Some(folder) = env::var_os("MISERLY_SCREENSHOTS") else { return };
        let shot =
            self.call("Page.captureScreenshot", &json!({ "format": "png", "captureBeyondViewport": true }));
        let bytes = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            shot["data"].as_str().unwrap(),
        );
        fs::write(Path::new(&folder).join(format!("{name}.png")), bytes.unwrap()).unwrap();
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let answer = self.read();
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn read(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Ends a browser that could not be driven.
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(process) = &mut self.0 {
            end(process);
        }
    }
}

fn end(process: &mut Child) {
    // It may have ended by itself.
    let _ = process.kill();
    let _ = process.wait();
}

fn program() -> Option<PathBuf> {
    if let Some(named) = env::var_os("MISERLY_BROWSER") {
        return Some(named.into());
    }
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

/// Connects to the port that the browser writes into its profile when it is ready.
fn connect(profile: &Path) -> WebSocket<TcpStream> {
    let pause = Duration::from_millis(50);
    let tries = PATIENCE.as_millis() / pause.as_millis();
    for _ in 0..tries {
        let ready = fs::read_to_string(profile.join("DevToolsActivePort")).unwrap_or_default();
        if let Some((port, path)) = ready.split_once('\n').filter(|(_, path)| !path.is_empty()) {
            let address = format!("127.0.0.1:{port}");
            let stream = TcpStream::connect(&address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            return tungstenite::client(format!("ws://{address}{path}"), stream).unwrap().0;
        }
        thread::sleep(pause);
    }
    panic!("the browser did not open its developer tools within {PATIENCE:?}");
}
