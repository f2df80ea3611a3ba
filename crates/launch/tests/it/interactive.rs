//! Interactive jobs: their input, their terminal, and the clients of their relay.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use miserly_launch::frame::{ClientFrame, Frame, FrameReader, LONGEST, RelayFrame, RelayHello, WINDOW};
use miserly_launch::{Exit, Interaction, RelaySocket, Shim, ShimCommand};

use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;

use crate::support::{Test, alive, done, ended, is_stopped, until};
use crate::users::{UID, of_user};

const TERMINAL: Interaction = Interaction::Terminal { rows: 20, columns: 70 };

/// An attached client.
struct Client {
    stream: UnixStream,
    reader: FrameReader,
    hello: RelayHello,
    output: Vec<u8>,
    taken: usize,
}

impl Client {
    /// Attaches to a job whose command may run now.
    #[track_caller]
    fn attach(test: &Test, from: Option<u64>) -> Client {
        let mut client = Client::connect(test, UnixStream::pair().unwrap());
        client.send(&ClientFrame::Open { from });
        match client.next() {
            Some(RelayFrame::Hello(hello)) => client.hello = hello,
            other => panic!("no greeting but {other:?}"),
        }
        client
    }

    /// Passes one end of a connection to the relay.
    #[track_caller]
    fn connect(test: &Test, (ours, theirs): (UnixStream, UnixStream)) -> Client {
        RelaySocket::connect(&test.dir()).unwrap().pass(theirs.as_fd()).unwrap();
        let (reader, hello) = (FrameReader::default(), RelayHello::default());
        Client { stream: ours, reader, hello, output: vec![], taken: 0 }
    }

    fn send(&mut self, frame: &ClientFrame) {
        let mut bytes = vec![];
        frame.write(&mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }

    fn input(&mut self, text: &str) {
        self.send(&ClientFrame::Input(text.into()));
    }

    /// Returns the next frame; `None` at the end of the connection.
    fn next(&mut self) -> Option<RelayFrame> {
        loop {
            if let Some(frame) = self.reader.next_frame().unwrap() {
                return Some(frame);
            }
            let mut buffer = [0; 4096];
            let read = self.stream.read(&mut buffer).unwrap_or(0);
            if read == 0 {
                return None;
            }
            self.reader.push(&buffer[..read]);
        }
    }

    /// Takes the next frame; returns it unless it is output or an acknowledgement.
    fn step(&mut self) -> Option<RelayFrame> {
        match self.next()? {
            RelayFrame::Output(bytes) => self.output.extend(bytes),
            RelayFrame::Taken(bytes) => self.taken += bytes as usize,
            other => return Some(other),
        }
        None
    }

    /// Waits for a text in the output, and forgets what comes before it.
    #[track_caller]
    fn expect(&mut self, text: &str) {
        loop {
            let shown = String::from_utf8_lossy(&self.output).into_owned();
            if let Some(at) = shown.find(text) {
                shown.as_bytes()[at + text.len()..].clone_into(&mut self.output);
                return;
            }
            assert_eq!(self.step(), None, "{text:?} is not in {shown:?}");
        }
    }

    /// Reads until the relay ends the connection. Returns the last frame.
    fn rest(&mut self) -> Option<RelayFrame> {
        let mut last = None;
        while let Some(frame) = self.next() {
            match frame {
                RelayFrame::Output(bytes) => self.output.extend(bytes),
                other => last = Some(other),
            }
        }
        last
    }
}

#[track_caller]
fn interactive(interaction: Interaction, script: &str) -> (Test, Shim) {
    let mut test = Test::new(script);
    test.spec.interaction = Some(interaction);
    let shim = test.launch();
    until(|| test.dir().join("started.json").exists().then_some(()));
    (test, shim)
}

#[test]
fn a_job_has_a_terminal_whose_size_follows_its_client() {
    let script = "test -t 0 && test -t 1 && test -t 2 && echo terminal; stty size </dev/tty; \
        echo ready; while read -r line; do echo \"<$line>\"; stty size; done";
    let (test, shim) = interactive(TERMINAL, script);
    let mut client = Client::attach(&test, Some(0));
    assert!(client.hello.terminal && client.hello.takes_input);
    client.expect("terminal\r\n20 70\r\nready\r\n");
    client.send(&ClientFrame::Size { rows: 31, columns: 99 });
    client.input("one\n");
    client.expect("31 99");
    client.input("two\n");
    client.expect("<two>");
    client.input("\u{4}");
    assert_eq!(client.rest(), Some(RelayFrame::EndOfOutput));
    assert_eq!(ended(&shim).exit, Exit::Code(0));
    assert!(test.out().starts_with("terminal\r\n20 70\r\nready\r\n"), "{}", test.out());
    assert!(test.out().contains("<two>"), "{}", test.out());
}

#[test]
fn a_terminal_is_never_of_no_size() {
    for (rows, columns, expect) in [(0, 0, "24 80"), (0, 132, "24 132"), (50, 0, "50 80")] {
        let script = "stty size; echo ready; read -r line; stty size";
        let (test, shim) = interactive(Interaction::Terminal { rows, columns }, script);
        let mut client = Client::attach(&test, Some(0));
        client.expect(&format!("{expect}\r\nready\r\n"));
        client.send(&ClientFrame::Size { rows: 0, columns: 0 });
        client.input("go\n");
        client.expect(&format!("go\r\n{expect}\r\n"));
        assert_eq!(client.rest(), Some(RelayFrame::EndOfOutput));
        assert_eq!(ended(&shim).exit, Exit::Code(0));
    }
}

#[test]
fn the_interrupt_character_interrupts() {
    // A shell may lose a signal just before it becomes its last command.
    let (test, shim) = interactive(TERMINAL, "echo ready; while :; do sleep 0.1; done");
    let mut client = Client::attach(&test, Some(0));
    client.expect("ready");
    client.input("\u{3}");
    assert_eq!(client.rest(), Some(RelayFrame::EndOfOutput));
    assert_eq!(ended(&shim).exit, Exit::Signal { signal: 2, core: false });
}

#[test]
fn a_job_that_leaves_its_terminal_runs_on_and_may_come_back() {
    let script = "stty -echo; own=$(tty); echo ready; exec >log 2>&1 </dev/null; sleep 0.7; \
        exec 3<>\"$own\"; echo back >&3; read -r line <&3; echo \"got $line\" >&3; exec 3>&-; sleep 0.3; exit 5";
    let (test, shim) = interactive(TERMINAL, script);
    let mut client = Client::attach(&test, Some(0));
    client.expect("ready\r\n");
    until(|| test.folder.path().join("log").exists().then_some(()));
    client.input("it\n");
    client.expect("back\r\n");
    client.expect("got it\r\n");
    assert_eq!(client.rest(), Some(RelayFrame::EndOfOutput));
    assert_eq!(ended(&shim).exit, Exit::Code(5));
    assert_eq!(test.out(), "ready\r\nback\r\ngot it\r\n");
}

#[test]
fn a_terminal_loses_no_output_without_a_grace() {
    // The relay, the other child of the shim, cannot read before the exit.
    let script = "for child in $(cat /proc/$PPID/task/*/children); do \
        test $child = $$ || kill -STOP $child; done; echo last";
    let mut test = Test::new(script);
    test.spec.interaction = Some(TERMINAL);
    test.spec.grace = Duration::ZERO;
    let shim = test.launch();
    assert_eq!(ended(&shim).exit, Exit::Code(0));
    assert_eq!(test.out(), "last\r\n");
}

#[test]
fn no_signal_ends_a_relay_however_early() {
    // A process that has just begun has the mask of its parent.
    let script = "for child in $(cat /proc/$PPID/task/*/children); do \
        test $child = $$ || grep SigBlk /proc/$child/status; done";
    let (test, shim) = interactive(TERMINAL, script);
    assert_eq!(ended(&shim).exit, Exit::Code(0));
    let mask = test.out().trim().rsplit('\t').next().and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let terminate = 1 << (rustix::process::Signal::TERM.as_raw() - 1);
    assert_eq!(mask.map(|mask| mask & terminate), Some(terminate), "{}", test.out());
}

#[test]
fn a_client_is_told_only_of_its_own_input() {
    let script = "trap 'touch got' USR1; touch ready; until test -e go; do sleep 0.1; done; \
        head -c 100000 >/dev/null; sleep 60";
    let (test, mut shim) = interactive(Interaction::Stdin, script);
    let mut first = Client::attach(&test, Some(0));
    let has = |name| test.folder.path().join(name).exists().then_some(());
    until(|| has("ready"));
    // As much as the pipe holds, and more.
    let mut sent = 0;
    while sent < 64 << 10 {
        first.input(&"x".repeat(LONGEST));
        sent += LONGEST;
    }
    while first.taken < sent {
        assert_eq!(first.step(), None);
    }
    first.input(&"x".repeat(LONGEST));
    first.send(&ClientFrame::Signal(10));
    until(|| has("got"));
    let mut second = Client::connect(&test, UnixStream::pair().unwrap());
    assert_eq!(first.rest(), Some(RelayFrame::Replaced));
    fs::write(test.folder.path().join("go"), "").unwrap();
    std::thread::sleep(Duration::from_millis(500));
    second.send(&ClientFrame::Open { from: Some(0) });
    let Some(RelayFrame::Hello(hello)) = second.next() else { panic!("no greeting") };
    second.input("y");
    while second.taken < hello.queued as usize + 1 {
        assert_eq!(second.step(), None);
    }
    assert_eq!((hello.queued, second.taken), (0, 1));
    done(&mut shim, &ShimCommand::Kill { grace: Duration::ZERO });
}

#[test]
fn a_client_that_comes_back_gets_what_it_missed_and_replaces_the_one_before() {
    let (test, shim) =
        interactive(TERMINAL, "stty -echo; echo ready; read -r a; echo got $a; read -r b; exit 3");
    let mut first = Client::attach(&test, Some(0));
    first.expect("ready\r\n");
    let mut second = Client::attach(&test, None);
    assert_eq!(first.rest(), Some(RelayFrame::Replaced));
    second.expect("ready\r\n");
    second.input("it\n");
    second.expect("got it\r\n");
    drop(second);
    let mut third = Client::attach(&test, Some(first.hello.from + 7));
    third.expect("got it\r\n");
    third.input("\n");
    third.rest();
    assert_eq!(ended(&shim).exit, Exit::Code(3));
}

#[test]
fn a_client_that_does_not_read_holds_nothing_up_and_loses_nothing() {
    const LINES: usize = 200_000;
    let (test, shim) =
        interactive(TERMINAL, &format!("stty -onlcr; seq {LINES}; echo done >done; read -r end"));
    let mut client = Client::attach(&test, Some(0));
    until(|| test.folder.path().join("done").exists().then_some(()));
    let lines: String = (1..=LINES).flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
    client.expect(&lines);
    client.input("\n");
    client.rest();
    assert_eq!(ended(&shim).exit, Exit::Code(0));
    assert!(test.out().starts_with(&lines));
}

#[test]
fn ten_megabytes_of_input_reach_the_job_and_then_their_end() {
    let (test, shim) = interactive(Interaction::Stdin, "wc -c");
    let mut client = Client::attach(&test, Some(0));
    assert!(!client.hello.terminal && client.hello.takes_input);
    let (total, mut sent) = (10 << 20, 0);
    while sent < total {
        if sent - client.taken + LONGEST <= WINDOW {
            client.send(&ClientFrame::Input(vec![b'x'; LONGEST]));
            sent += LONGEST;
        } else {
            assert_eq!(client.step(), None);
        }
    }
    client.send(&ClientFrame::EndOfInput);
    client.rest();
    assert_eq!(ended(&shim).exit, Exit::Code(0));
    assert_eq!(test.out().trim(), total.to_string());
}

#[test]
fn a_client_that_sends_more_than_it_may_is_disconnected() {
    let (test, mut shim) = interactive(Interaction::Stdin, "sleep 60");
    let mut client = Client::attach(&test, Some(0));
    // The relay may close the connection before it has got all of it.
    let mut bytes = vec![];
    for _ in 0..32 {
        ClientFrame::Input(vec![0; LONGEST]).write(&mut bytes);
    }
    let _ = client.stream.write_all(&bytes);
    client.rest();
    drop(client);
    let again = Client::attach(&test, Some(0));
    assert!(again.hello.queued as usize <= WINDOW && again.hello.queued > 0);
    done(&mut shim, &ShimCommand::Kill { grace: Duration::ZERO });
}

#[test]
fn a_signal_reaches_the_job() {
    let (test, shim) =
        interactive(Interaction::Stdin, "trap 'echo caught; exit 7' INT; echo ready; read -r end");
    let mut client = Client::attach(&test, Some(0));
    test.wait_out("ready");
    // Not one of those that a client may send.
    client.send(&ClientFrame::Signal(9));
    client.send(&ClientFrame::Signal(2));
    client.rest();
    assert_eq!(ended(&shim).exit, Exit::Code(7));
    assert_eq!(test.out(), "ready\ncaught\n");
}

#[test]
fn a_job_with_an_input_file_takes_none_from_clients() {
    let mut test = Test::new("cat; sleep 60");
    fs::write(test.folder.path().join("in"), "text\n").unwrap();
    test.spec.stdin = Some("in".into());
    test.spec.interaction = Some(Interaction::Stdin);
    let shim = test.launch();
    test.wait_out("text");
    let mut client = Client::attach(&test, Some(0));
    assert!(!client.hello.takes_input);
    client.input("more");
    while client.taken < 4 {
        assert_eq!(client.step(), None);
    }
    client.send(&ClientFrame::Signal(15));
    client.rest();
    assert_eq!(ended(&shim).exit, Exit::Signal { signal: 15, core: false });
}

#[test]
fn the_relay_is_a_process_of_the_job() {
    let (test, mut shim) = interactive(TERMINAL, "echo $$; sleep 60");
    let mut client = Client::attach(&test, Some(0));
    client.expect("\r\n");
    let main = until(|| test.out().trim().parse().ok());
    done(&mut shim, &ShimCommand::Stop);
    assert!(is_stopped(main));
    done(&mut shim, &ShimCommand::Resume);
    client.input("\u{1a}");
    done(&mut shim, &ShimCommand::Kill { grace: Duration::ZERO });
    ended(&shim);
    client.rest();
    assert!(!alive(main));
    assert!(RelaySocket::connect(&test.dir()).is_err());
}

#[test]
fn a_terminal_is_its_user_s_and_takes_no_client_of_a_third_user() {
    let Some(mut test) = of_user("stat -c 'of %u' \"$(tty)\"; read -r end") else { return };
    test.spec.interaction = Some(TERMINAL);
    let shim = test.launch();
    until(|| test.dir().join("started.json").exists().then_some(()));
    // The kernel remembers the user that made a pair of sockets.
    let pair_of = |uid| {
        let pair = std::thread::spawn(move || {
            let uid = Uid::from_raw(uid);
            set_thread_res_uid(uid, uid, uid).unwrap();
            UnixStream::pair().unwrap()
        });
        pair.join().unwrap()
    };
    let mut root = Client::attach(&test, Some(0));
    root.expect(&format!("of {UID}\r\n"));
    let mut third = Client::connect(&test, pair_of(UID + 7));
    assert_eq!(third.next(), None);
    let mut own = Client::connect(&test, pair_of(UID));
    own.send(&ClientFrame::Open { from: None });
    assert!(matches!(own.next(), Some(RelayFrame::Hello(_))));
    assert_eq!(root.rest(), Some(RelayFrame::Replaced));
    own.input("\n");
    own.rest();
    assert_eq!(ended(&shim).exit, Exit::Code(0));
}

#[test]
fn a_connection_to_a_listening_socket_is_no_client() {
    let (test, mut shim) = interactive(Interaction::Stdin, "sleep 60");
    let path = test.folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let connecting = UnixStream::connect(&path).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let mut client = Client::connect(&test, (accepted, connecting));
    assert_eq!(client.next(), None);
    done(&mut shim, &ShimCommand::Kill { grace: Duration::ZERO });
}
