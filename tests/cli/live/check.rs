//! `miserly daemon --check`: what a configuration comes to, or what is wrong with it.

use serde_json::json;

use crate::support::{Lab, parsed, small_log};

const SMALL: &str = r#"
state = "/srv/state"
socket = "/srv/socket"
[pool]
cpus = 1
memory = "64MB"
[[queue]]
name = "night"
policy = "easy"
max-time = "90min"
users = [0]
calendar = [{ days = "sat,sun", cpus = 0 }]
"#;

#[test]
fn what_a_configuration_comes_to() {
    let lab = Lab::new();
    lab.write("daemon.toml", SMALL);
    let text = lab.stdout("daemon --check daemon.toml");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["state   /srv/state", "socket  /srv/socket, for the daemon's user and root"]);
    assert_eq!(
        lines[3..5],
        ["", "QUEUE  POLICY  PROMISES                 CPUS  MEMORY  LONGEST  USERS"],
        "{text}"
    );
    assert_eq!(lines[5], "night  easy    the head of the queue  0 to 1   64MiB    1h30m  0", "{text}");
    let document = parsed(&lab.stdout("daemon --check daemon.toml --json"));
    let queue = &document["queues"][0];
    assert_eq!((&document["access"], &queue["cpus"]), (&json!("own"), &json!([0, 1])));
    assert_eq!((&queue["memory"], &queue["max_time"]), (&json!([64 << 20, 64 << 20]), &json!(5400.0)));
}

#[test]
fn what_is_wrong_is_said_as_of_machine_files() {
    let lab = Lab::with_log(&small_log());
    let pool = "[pool]\ncpus = 1\ncalendar = [{ from = \"8\", cpus = 0 }]\n";
    lab.write("daemon.toml", pool);
    lab.write("machine.toml", format!("[[host]]\nname = \"a\"\ncpus = 1\n{pool}"));
    let says = "pool: \"8\" is no time of the day; write it as 08:00";
    let daemon = lab.run("daemon --check daemon.toml");
    assert!(daemon.stderr.contains(&format!("daemon.toml:3: {says}")), "{}", daemon.stderr);
    let machine = lab.run("simulate log.swf --policy easy --machine machine.toml");
    assert!(machine.stderr.contains(&format!("machine.toml:6: {says}")), "{}", machine.stderr);
}
