//! Calls of methods of systemd.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::geteuid;

use super::{SystemdError, is_of_machine};

const SERVICE: &str = "org.freedesktop.systemd1";
const MANAGER: [&str; 2] = ["/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];

/// The time for an answer, in seconds.
const LIMIT: u64 = 10;
/// The pause between looks for the end of a client.
const PAUSE: Duration = Duration::from_millis(2);
/// The looks for the end of a client, which needs a moment more than the answer.
const LOOKS: u32 = 6000;

/// A property of a unit: its name, its type in D-Bus, its value in the words of `busctl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Property(Vec<String>);

impl Property {
    pub(super) fn new(name: &str, kind: &str, value: &str) -> Property {
        Property([name, kind, value].map(str::to_owned).to_vec())
    }

    /// A list of texts.
    pub(super) fn texts(name: &str, texts: &[&str]) -> Property {
        let mut words = vec![name.to_owned(), "as".to_owned(), texts.len().to_string()];
        words.extend(texts.iter().map(|text| (*text).to_owned()));
        Property(words)
    }

    /// Processors, as bits in bytes from the lowest one on. An empty list lifts the limit.
    pub(super) fn allowed_cpus(cpus: &[u32]) -> Property {
        let mut bytes = vec![0_u8; cpus.iter().max().map_or(0, |highest| *highest as usize / 8 + 1)];
        for cpu in cpus {
            bytes[*cpu as usize / 8] |= 1 << (cpu % 8);
        }
        let mut words = vec!["AllowedCPUs".to_owned(), "ay".to_owned(), bytes.len().to_string()];
        words.extend(bytes.iter().map(u8::to_string));
        Property(words)
    }
}

fn words(properties: &[Property]) -> impl Iterator<Item = String> {
    let count = properties.len().to_string();
    std::iter::once(count).chain(properties.iter().flat_map(|property| property.0.clone()))
}

/// Sets properties of units until the machine is rebooted, of all units at the same time.
///
/// # Errors
/// The first failure, after all units were tried.
pub(super) fn set_properties(units: &[(&str, Vec<Property>)]) -> Result<(), SystemdError> {
    let calls: Vec<_> = units
        .iter()
        .map(|(unit, properties)| {
            let mut call = Call::of_manager("SetUnitProperties", "sba(sv)", &[unit, "true"]);
            call.arguments.extend(words(properties));
            call.begin()
        })
        .collect();
    // All are waited for, also after a failure.
    let ends: Vec<_> = calls.into_iter().map(|call| call.and_then(Running::end).map(drop)).collect();
    ends.into_iter().collect()
}

/// Starts a scope with these processes in it, and these properties.
///
/// # Errors
/// As every call.
pub(super) fn start_scope(
    name: &str,
    processes: &[u32],
    properties: &[Property],
) -> Result<(), SystemdError> {
    let mut call = Call::of_manager("StartTransientUnit", "ssa(sv)a(sa(sv))", &[name, "fail"]);
    let mut pids = vec!["PIDs".to_owned(), "au".to_owned(), processes.len().to_string()];
    pids.extend(processes.iter().map(u32::to_string));
    let mut all = vec![Property(pids)];
    all.extend(properties.iter().cloned());
    call.arguments.extend(words(&all).chain(["0".to_owned()]));
    call.begin()?.end().map(drop)
}

/// Calls a method of the manager that takes texts.
///
/// # Errors
/// As every call.
pub(super) fn manager(method: &'static str, texts: &[&str]) -> Result<(), SystemdError> {
    Call::of_manager(method, &"s".repeat(texts.len()), texts).begin()?.end().map(drop)
}

/// Returns the path of the control group of a scope, from the root of the hierarchy. It is empty if the scope does not run.
///
/// # Errors
/// As every call.
pub(super) fn control_group(scope: &str) -> Result<String, SystemdError> {
    let arguments =
        ["get-property", SERVICE, &object(scope), "org.freedesktop.systemd1.Scope", "ControlGroup"];
    let call = Call {
        what: format!("the control group of {scope}"),
        arguments: arguments.map(str::to_owned).to_vec(),
    };
    let answer = call.begin()?.end()?;
    // s "/miserly.slice/miserly-jobs.scope"
    let text = answer.trim().strip_prefix("s \"").and_then(|text| text.strip_suffix('"'));
    text.map(str::to_owned)
        .ok_or_else(|| SystemdError::Refused { what: format!("the control group of {scope}"), answer })
}

/// Returns the path of a unit in D-Bus.
fn object(unit: &str) -> String {
    let mut path = "/org/freedesktop/systemd1/unit/".to_owned();
    for byte in unit.bytes() {
        if byte.is_ascii_alphanumeric() {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("_{byte:02x}"));
        }
    }
    path
}

/// A call that has not begun.
struct Call {
    what: String,
    arguments: Vec<String>,
}

/// A call that waits for its answer.
struct Running {
    what: String,
    child: Child,
}

impl Call {
    fn of_manager(method: &'static str, signature: &str, texts: &[&str]) -> Call {
        let [object, interface] = MANAGER;
        let mut arguments =
            ["call", SERVICE, object, interface, method, signature].map(str::to_owned).to_vec();
        arguments.extend(texts.iter().map(|text| (*text).to_owned()));
        Call { what: format!("{method} {}", texts.first().unwrap_or(&"")), arguments }
    }

    fn begin(self) -> Result<Running, SystemdError> {
        let mut command = Command::new("busctl");
        // Nothing of the caller's environment can lead to another program or another bus.
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
        if is_of_machine() {
            command.arg("--system");
        } else {
            command.arg("--user").env("XDG_RUNTIME_DIR", format!("/run/user/{}", geteuid().as_raw()));
        }
        command.args(["--no-pager", "--auto-start=no", "--allow-interactive-authorization=no"]);
        command.arg(format!("--timeout={LIMIT}")).args(self.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(SystemdError::NoClient)?;
        Ok(Running { what: self.what, child })
    }
}

impl Running {
    /// Waits for the answer and returns it. Ends the client if it takes too long.
    fn end(mut self) -> Result<String, SystemdError> {
        // Answers are short: the client never waits for a reader.
        for _ in 0..LOOKS {
            match self.child.try_wait().map_err(SystemdError::NoClient)? {
                Some(status) if status.success() => return text(self.child.stdout.take()),
                Some(_) => {
                    let answer = text(self.child.stderr.take())?.trim().to_owned();
                    return Err(SystemdError::Refused { what: self.what, answer });
                }
                None => thread::sleep(PAUSE),
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        Err(SystemdError::TimedOut { what: self.what, seconds: LIMIT })
    }
}

fn text(output: Option<impl Read>) -> Result<String, SystemdError> {
    let mut text = String::new();
    let read = output.map_or(Ok(0), |mut output| output.read_to_string(&mut text));
    read.map(|_| text).map_err(|error: io::Error| SystemdError::NoClient(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_bits_from_the_lowest_on() {
        let words = |cpus: &[u32]| Property::allowed_cpus(cpus).0.join(" ");
        assert_eq!(words(&[0, 2, 9]), "AllowedCPUs ay 2 5 2");
        assert_eq!(words(&[]), "AllowedCPUs ay 0");
    }

    #[test]
    fn units_have_paths_without_other_characters() {
        assert_eq!(object("miserly-jobs.scope"), "/org/freedesktop/systemd1/unit/miserly_2djobs_2escope");
    }

    #[test]
    fn an_unreachable_bus_is_a_clear_error() {
        let error = manager("NoSuchMethod", &["a"]).expect_err("there is no such method");
        let text = error.to_string();
        assert!(text.contains("NoSuchMethod a") || text.contains("busctl"), "{text}");
    }
}
