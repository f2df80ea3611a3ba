//! The GPUs of jobs: which devices a job sees, and how.
//!
//! A job sees the device nodes of its own GPUs, and those of no other GPU. The kernel keeps to that by a program that is
//! attached to the control group of the attempt before its shim begins ([`miserly_cgroup::JobGroup::hide_devices`]).
//!
//! > **Architecture invariant:** a launch names GPUs by index. Their device nodes are in the settings, which the daemon cannot
//! > change any more.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use miserly_cgroup::{Device, DeviceKind, DeviceRange, DeviceRules, Tree};
use serde::{Deserialize, Serialize};

use crate::{AttemptId, syscall_filter};

/// The major number of the GPUs of NVIDIA, and their minor numbers. Those above are of all GPUs together.
const NVIDIA: DeviceRange = DeviceRange { kind: DeviceKind::Character, major: 195, minors: (0, 253) };

/// The beginnings of the paths of nodes whose minor number follows, with their major numbers.
const NUMBERED: [(&str, u32); 3] =
    [("/dev/nvidia", NVIDIA.major), ("/dev/dri/card", 226), ("/dev/dri/renderD", 226)];

/// The same of the nodes of parts, whose major number the kernel chooses, and the name of their driver.
const PART_NODE: (&str, &str) = ("/dev/nvidia-caps/nvidia-cap", "nvidia-caps");

/// The beginning of the UUID of a part of a GPU (Multi-Instance GPU).
const PART: &str = "MIG-";

/// The argument with which the executor starts itself to hide devices, and the name of that process.
pub(crate) const HIDE_DEVICES: &str = "--hide-devices";
const NAME: &str = "miserly-devices";

/// A GPU for jobs, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuDevice {
    /// The device nodes through which programs use it.
    pub nodes: Vec<PathBuf>,
    /// The UUID by which the driver knows it.
    pub uuid: Option<String>,
}

/// The reason why the GPUs of a launch are none that a job may have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WrongGpus {
    #[error("GPU {0} is not one of this machine")]
    Unknown(u32),
    #[error("a job has GPU {0} twice")]
    Twice(u32),
}

/// Checks the GPUs of a job, by index, against those of the machine.
pub(crate) fn check(gpus: &[GpuDevice], own: &[u32]) -> Result<(), WrongGpus> {
    let mut seen = BTreeSet::new();
    for index in own {
        if device(gpus, *index).is_none() {
            return Err(WrongGpus::Unknown(*index));
        }
        if !seen.insert(index) {
            return Err(WrongGpus::Twice(*index));
        }
    }
    Ok(())
}

fn device(gpus: &[GpuDevice], index: u32) -> Option<&GpuDevice> {
    gpus.get(usize::try_from(index).ok()?)
}

/// Returns the value of the variables by which libraries choose GPUs, for a job that sees no others.
///
/// Libraries number the devices that they can open from 0. A part of a GPU has a name only.
pub(crate) fn visible(gpus: &[GpuDevice], own: &[u32]) -> String {
    let parts =
        own.iter().map(|index| device(gpus, *index)?.uuid.as_deref().filter(|id| id.starts_with(PART)));
    match parts.collect::<Option<Vec<&str>>>() {
        Some(parts) if !parts.is_empty() => parts.join(","),
        _ => indexes(&(0..).zip(own).map(|(number, _)| number).collect::<Vec<u32>>()),
    }
}

/// Returns the indexes of GPUs with commas between them.
pub(crate) fn indexes(own: &[u32]) -> String {
    own.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Returns the rules for a job with these GPUs, by index.
///
/// All GPUs of NVIDIA are hidden. A node that does not exist yet is hidden by its number, if that is known: nodes appear when a
/// program uses the driver for the first time.
pub(crate) fn rules(gpus: &[GpuDevice], own: &[u32]) -> DeviceRules {
    let devices = |gpu: &GpuDevice| gpu.nodes.iter().filter_map(|node| device_of(node)).collect::<Vec<_>>();
    let all: BTreeSet<Device> = gpus.iter().flat_map(devices).collect();
    let is_nvidia = |device: &Device| device.kind == NVIDIA.kind && device.major == NVIDIA.major;
    let others = all.iter().filter(|device| !is_nvidia(device)).map(|device| (*device).into());
    let nvidia = all.iter().any(is_nvidia).then_some(NVIDIA);
    let own: BTreeSet<Device> =
        own.iter().filter_map(|index| device(gpus, *index)).flat_map(devices).collect();
    DeviceRules { hidden: nvidia.into_iter().chain(others).collect(), own: own.into_iter().collect() }
}

fn device_of(node: &Path) -> Option<Device> {
    let drivers = || std::fs::read_to_string("/proc/devices").unwrap_or_default();
    numbered(node, drivers).or_else(|| Device::of_node(node).ok().flatten())
}

/// Returns the device of a node by its name, whether it exists or not. `drivers` returns the content of `/proc/devices`.
fn numbered(node: &Path, drivers: impl Fn() -> String) -> Option<Device> {
    let path = node.to_str()?;
    let device = |major, minor| Device { kind: DeviceKind::Character, major, minor };
    let known =
        NUMBERED.iter().find_map(|(begin, major)| Some((major, path.strip_prefix(begin)?.parse().ok()?)));
    if let Some((major, minor)) = known {
        return Some(device(*major, minor));
    }
    let minor = path.strip_prefix(PART_NODE.0)?.parse().ok()?;
    let drivers = drivers();
    let characters = drivers.lines().take_while(|line| !line.starts_with("Block"));
    let mut majors =
        characters.filter_map(|line| line.trim().split_once(' ')).filter(|(_, name)| *name == PART_NODE.1);
    Some(device(majors.next()?.0.parse().ok()?, minor))
}

/// What hides devices from the control groups of attempts.
#[derive(Debug)]
pub enum DeviceHider {
    /// This process.
    Own(Tree),
    /// A process that may do so, for one that gives up the system call.
    Process(Mutex<HiderConnection>),
}

/// The connection to a process that hides devices.
#[derive(Debug)]
pub struct HiderConnection(BufReader<UnixStream>);

/// A message to such a process: the tree first, and then the rules of attempts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Message {
    Tree(PathBuf),
    Hide { attempt: AttemptId, rules: DeviceRules },
}

impl DeviceHider {
    /// Starts a process of the executor's program that hides devices in the groups of a tree. It ends with this process.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn process(tree: &Tree) -> io::Result<DeviceHider> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).arg(HIDE_DEVICES).env_clear().current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?;
        let mut connection = HiderConnection(BufReader::new(ours));
        connection.send(&Message::Tree(tree.group().path().to_owned()))?;
        Ok(DeviceHider::Process(Mutex::new(connection)))
    }

    /// Creates the group of an attempt, and hides devices from it.
    ///
    /// # Errors
    /// The kernel refuses it. [`io::ErrorKind::UnexpectedEof`] or [`io::ErrorKind::BrokenPipe`]: the process has ended.
    pub(crate) fn hide(&self, attempt: AttemptId, rules: DeviceRules) -> io::Result<()> {
        match self {
            DeviceHider::Own(tree) => hide(tree, attempt, &rules),
            DeviceHider::Process(connection) => connection
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .request(&Message::Hide { attempt, rules }),
        }
    }
}

impl HiderConnection {
    fn send(&mut self, message: &Message) -> io::Result<()> {
        self.0.get_mut().write_all(format!("{}\n", serde_json::to_string(message)?).as_bytes())
    }

    /// Sends a message and waits for the reply: an empty line, or the problem.
    fn request(&mut self, message: &Message) -> io::Result<()> {
        self.send(message)?;
        let mut reply = String::new();
        self.0.read_line(&mut reply)?;
        match reply.strip_suffix('\n') {
            Some("") => Ok(()),
            Some(problem) => Err(io::Error::other(problem.to_owned())),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Hides devices for the executor at the other end of standard input, until that ends.
pub(crate) fn serve() -> io::Result<()> {
    let mut stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    // Of the calls that an executor gives up, it makes this one only.
    syscall_filter::apply_for_devices()?;
    let mut next = || lines.next().transpose();
    let Some(first) = next()? else { return Ok(()) };
    let Message::Tree(path) = serde_json::from_str(&first)? else {
        return Err(io::Error::other("the first message has to be the tree"));
    };
    let tree = Tree::opened(&path, None);
    while let Some(line) = next()? {
        let Message::Hide { attempt, rules } = serde_json::from_str(&line)? else {
            return Err(io::Error::other("only the first message is the tree"));
        };
        let problem = hide(&tree, attempt, &rules).err().map_or(String::new(), |error| error.to_string());
        stream.write_all(format!("{}\n", problem.replace('\n', " ")).as_bytes())?;
    }
    Ok(())
}

/// Hides devices in the group of an attempt. A group that an earlier try left is replaced, so that no second program is attached.
fn hide(tree: &Tree, attempt: AttemptId, rules: &DeviceRules) -> io::Result<()> {
    let job = tree.job(attempt.job.unsigned_abs(), attempt.nth);
    job.remove().and_then(|()| job.create()).and_then(|()| job.hide_devices(rules)).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(nodes: &[&str]) -> GpuDevice {
        GpuDevice { nodes: nodes.iter().map(Into::into).collect(), uuid: None }
    }

    fn nvidia(minor: u32) -> Device {
        Device { kind: DeviceKind::Character, major: 195, minor }
    }

    #[test]
    fn all_gpus_of_nvidia_are_hidden_but_those_of_the_job() {
        let gpus = [gpu(&["/dev/nvidia0"]), gpu(&["/dev/nvidia1"]), gpu(&["/dev/nvidia9"])];
        let rules = rules(&gpus, &[1, 2]);
        assert_eq!((rules.hidden, rules.own), (vec![NVIDIA], vec![nvidia(1), nvidia(9)]));
        let none = super::rules(&gpus, &[]);
        assert_eq!((none.hidden, none.own), (vec![NVIDIA], vec![]));
    }

    #[test]
    fn parts_of_a_gpu_share_its_node_and_have_nodes_of_their_own() {
        let gpus = [gpu(&["/dev/nvidia0", "/dev/zero"]), gpu(&["/dev/nvidia0", "/dev/full", "/dev/missing"])];
        let [zero, full] = ["/dev/zero", "/dev/full"].map(|node| device_of(Path::new(node)).unwrap());
        let rules = rules(&gpus, &[0]);
        assert_eq!(rules.hidden, [NVIDIA, zero.into(), full.into()]);
        assert_eq!(rules.own, [zero, nvidia(0)]);
    }

    #[test]
    fn nodes_that_do_not_exist_yet_have_their_numbers() {
        let drivers =
            || "Character devices:\n  1 mem\n236 nvidia-caps\nBlock devices:\n  7 nvidia-caps\n".to_owned();
        let device = |major, minor| Some(Device { kind: DeviceKind::Character, major, minor });
        for (node, expect) in [
            ("/dev/nvidia7", device(195, 7)),
            ("/dev/dri/renderD140", device(226, 140)),
            ("/dev/dri/card3", device(226, 3)),
            ("/dev/nvidia-caps/nvidia-cap21", device(236, 21)),
            ("/dev/nvidiactl", None),
            ("/dev/zero", None),
        ] {
            assert_eq!(numbered(Path::new(node), drivers), expect, "{node}");
        }
        assert_eq!(numbered(Path::new("/dev/nvidia-caps/nvidia-cap21"), String::new), None);
    }

    #[test]
    fn a_job_has_gpus_of_the_machine_each_once() {
        let gpus = [gpu(&[]), gpu(&[])];
        assert_eq!(check(&gpus, &[1, 0]), Ok(()));
        assert_eq!(check(&gpus, &[2]), Err(WrongGpus::Unknown(2)));
        assert_eq!(check(&gpus, &[1, 1]), Err(WrongGpus::Twice(1)));
    }

    #[test]
    fn libraries_number_what_a_job_sees_and_parts_have_names() {
        let part = |uuid: &str| GpuDevice { uuid: Some(uuid.to_owned()), ..gpu(&[]) };
        let gpus = [part("GPU-a"), part("MIG-b"), part("MIG-c")];
        assert_eq!(visible(&gpus, &[0]), "0");
        assert_eq!(visible(&gpus, &[1, 2]), "MIG-b,MIG-c");
        assert_eq!(visible(&gpus, &[]), "");
    }
}
