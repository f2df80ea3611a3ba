//! Devices that the processes of a group cannot use: a program of the kernel (eBPF) that is attached to the group.
//!
//! cgroup v2 has no files for devices. The kernel asks the programs of a group and of all groups above it at each `open` and
//! each `mknod` of a device, and refuses it if one of them does. A program belongs to the group: it stays until the group is
//! removed, also when the process that attached it has ended. The processes of the group cannot detach it, and a program that
//! they attach below cannot permit more.
//!
//! > **Architecture invariant:** all unsafe code of this crate is in this module.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use crate::{CgroupError, JobGroup, Tree};

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A block device.
    Block,
    /// A character device.
    Character,
}

/// The number of a device in the kernel, whatever the path of its node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Device {
    /// The kind.
    pub kind: DeviceKind,
    /// The major number: the driver.
    pub major: u32,
    /// The minor number: the device of the driver.
    pub minor: u32,
}

/// Devices of one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct DeviceRange {
    /// The kind.
    pub kind: DeviceKind,
    /// The major number.
    pub major: u32,
    /// The first and the last minor number.
    pub minors: (u32, u32),
}

/// The devices that a group may not use. All others are permitted, as far as the groups above it permit them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct DeviceRules {
    /// The hidden devices.
    pub hidden: Vec<DeviceRange>,
    /// Those of the hidden devices that the group has.
    pub own: Vec<Device>,
}

impl Device {
    /// Returns the device of a node; `None` if the file is no device.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_node(path: &Path) -> io::Result<Option<Device>> {
        let found = fs::metadata(path)?;
        let kind = match found.file_type() {
            kind if kind.is_char_device() => DeviceKind::Character,
            kind if kind.is_block_device() => DeviceKind::Block,
            _ => return Ok(None),
        };
        let number = found.rdev();
        Ok(Some(Device { kind, major: rustix::fs::major(number), minor: rustix::fs::minor(number) }))
    }
}

impl From<Device> for DeviceRange {
    fn from(Device { kind, major, minor }: Device) -> DeviceRange {
        DeviceRange { kind, major, minors: (minor, minor) }
    }
}

impl JobGroup {
    /// Hides devices from all processes of the group and of groups below it, until the group is removed.
    ///
    /// # Errors
    /// [`CgroupError::Io`]: the kernel has no such programs, the right to attach one is missing, or a group above permits none
    /// below it.
    pub fn hide_devices(&self, rules: &DeviceRules) -> Result<(), CgroupError> {
        let path = self.group().path();
        let hide = || {
            let group = open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            attach(&load(&program(rules))?, &group)
        };
        hide().map_err(CgroupError::io(path))
    }
}

impl Tree {
    /// Tries whether devices can be hidden from a job, in a group that is removed again.
    ///
    /// # Errors
    /// As [`JobGroup::hide_devices`].
    pub fn try_devices(&self) -> Result<(), CgroupError> {
        // No job has this number.
        let job = self.job(0, std::process::id());
        job.create()?;
        let tried = job.hide_devices(&DeviceRules::default());
        job.remove()?;
        tried
    }
}

/// An instruction of a program, as in `linux/bpf.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Instruction {
    code: u8,
    /// The destination in the lower half, the source in the upper one.
    registers: u8,
    offset: i16,
    value: i32,
}

/// The operations that the programs use: class, operation and operand, as in `linux/bpf.h`.
mod code {
    /// Loads four bytes at an offset from a register.
    pub(super) const LOAD: u8 = 0x61;
    /// Sets a register to a value.
    pub(super) const SET: u8 = 0xb7;
    /// Sets a register to its bits that a value has.
    pub(super) const AND: u8 = 0x57;
    /// Skips instructions if a register differs from a value. The comparisons are of the lower half of the register.
    pub(super) const SKIP_UNLESS: u8 = 0x56;
    /// Skips instructions if a register, without a sign, is greater than a value.
    pub(super) const SKIP_ABOVE: u8 = 0x26;
    /// Skips instructions if a register, without a sign, is less than a value.
    pub(super) const SKIP_BELOW: u8 = 0xa6;
    /// Ends the program. Register 0 is the answer.
    pub(super) const EXIT: u8 = 0x95;
}

/// The register of the answer, and that of the argument.
const ANSWER: u8 = 0;
const ARGUMENT: u8 = 1;
/// The registers of the facts about the device, each with its offset in the argument (`struct bpf_cgroup_dev_ctx`).
const KIND: (u8, i16) = (2, 0);
const MAJOR: (u8, i16) = (3, 4);
const MINOR: (u8, i16) = (4, 8);
/// The bits of the kind. Those above are the access.
const KIND_BITS: i32 = 0xffff;

impl DeviceKind {
    /// Returns its number in the kernel (`BPF_DEVCG_DEV_BLOCK`, `BPF_DEVCG_DEV_CHAR`).
    const fn number(self) -> i32 {
        match self {
            DeviceKind::Block => 1,
            DeviceKind::Character => 2,
        }
    }
}

/// Returns the program that applies the rules: own devices are permitted, hidden ones refused, all others permitted. Whether
/// the access is to read, to write or to make a node makes no difference.
fn program(rules: &DeviceRules) -> Vec<Instruction> {
    let make = |code, destination: u8, source: u8, offset, value| Instruction {
        code,
        registers: destination | source << 4,
        offset,
        value,
    };
    let mut program: Vec<Instruction> =
        [KIND, MAJOR, MINOR].map(|(register, at)| make(code::LOAD, register, ARGUMENT, at, 0)).into();
    let [of_kind, of_major, of_minor] = [KIND, MAJOR, MINOR].map(|(register, _)| register);
    program.push(make(code::AND, of_kind, 0, 0, KIND_BITS));
    // Each rule ends the program with its answer, or skips its answer.
    let mut rule = |DeviceRange { kind, major, minors: (first, last) }: DeviceRange, answer| {
        program.extend([
            make(code::SKIP_UNLESS, of_kind, 0, 5, kind.number()),
            make(code::SKIP_UNLESS, of_major, 0, 4, major.cast_signed()),
            make(code::SKIP_BELOW, of_minor, 0, 3, first.cast_signed()),
            make(code::SKIP_ABOVE, of_minor, 0, 2, last.cast_signed()),
            make(code::SET, ANSWER, 0, 0, answer),
            make(code::EXIT, 0, 0, 0, 0),
        ]);
    };
    for own in &rules.own {
        rule((*own).into(), 1);
    }
    for hidden in &rules.hidden {
        rule(*hidden, 0);
    }
    program.extend([make(code::SET, ANSWER, 0, 0, 1), make(code::EXIT, 0, 0, 0, 0)]);
    program
}

/// The commands of the system call `bpf`, and the type of the programs and of their attachment.
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const CGROUP_DEVICE_PROGRAM: u32 = 15;
const CGROUP_DEVICE: u32 = 6;
/// Beside the programs of the groups above, and not in their place.
const ALLOW_MULTI: u32 = 2;

/// The first fields of `union bpf_attr` for a load. The kernel takes the missing ones for 0.
#[repr(C)]
struct Load {
    program_type: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

/// The first fields of `union bpf_attr` for an attachment.
#[repr(C)]
struct Attach {
    target: RawFd,
    program: RawFd,
    place: u32,
    flags: u32,
}

/// Loads a program into the kernel, which checks it.
fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let license = c"";
    let request = Load {
        program_type: CGROUP_DEVICE_PROGRAM,
        count: program.len().try_into().map_err(io::Error::other)?,
        instructions: program.as_ptr().addr() as u64,
        license: license.as_ptr().addr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
    };
    let fd = bpf(PROG_LOAD, &request)?;
    #[allow(unsafe_code, reason = "rustix has no bpf")]
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches a program to a group. The kernel keeps it as long as the group exists.
fn attach(program: &OwnedFd, group: impl AsFd) -> io::Result<()> {
    let (target, program) = (group.as_fd().as_raw_fd(), program.as_raw_fd());
    bpf(PROG_ATTACH, &Attach { target, program, place: CGROUP_DEVICE, flags: ALLOW_MULTI }).map(drop)
}

/// Calls the kernel with a request, which has the layout of `union bpf_attr` for the command.
fn bpf<T>(command: libc::c_int, request: &T) -> io::Result<RawFd> {
    #[allow(unsafe_code, reason = "rustix has no bpf")]
    // SAFETY: the kernel reads no more than the size of the request. The program and the text to which a load points outlive
    // the call. The kernel writes nowhere, as there is no log.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(request), size_of::<T>()) };
    match RawFd::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel does.
    fn run(program: &[Instruction], access: u32, device: Device) -> i32 {
        let facts = [access << 16 | device.kind.number().cast_unsigned(), device.major, device.minor];
        let (mut registers, mut at) = ([0_u32; 5], 0);
        loop {
            let Instruction { code, registers: used, offset, value } = program[at];
            let (to, value) = (usize::from(used & 15), value.cast_unsigned());
            let skips = match code {
                code::EXIT => return registers[0].cast_signed(),
                code::LOAD => {
                    registers[to] = facts[usize::from(offset.unsigned_abs()) / 4];
                    false
                }
                code::SET => {
                    registers[to] = value;
                    false
                }
                code::AND => {
                    registers[to] &= value;
                    false
                }
                code::SKIP_UNLESS => registers[to] != value,
                code::SKIP_ABOVE => registers[to] > value,
                code::SKIP_BELOW => registers[to] < value,
                other => panic!("{other:#x}"),
            };
            at += 1 + if skips { usize::from(offset.unsigned_abs()) } else { 0 };
        }
    }

    #[test]
    fn own_devices_are_permitted_and_other_hidden_ones_refused() {
        let device = |kind, major, minor| Device { kind, major, minor };
        let gpu = |minor| device(DeviceKind::Character, 195, minor);
        let hidden = DeviceRange { kind: DeviceKind::Character, major: 195, minors: (0, 253) };
        let render = device(DeviceKind::Character, 226, 128);
        let rules = DeviceRules { hidden: vec![hidden, render.into()], own: vec![gpu(2), gpu(4)] };
        let program = program(&rules);
        for access in [1, 2, 4, 6] {
            let may = |device| run(&program, access, device) == 1;
            assert_eq!(
                [0, 1, 2, 3, 4, 253, 254, 255].map(|minor| may(gpu(minor))),
                [false, false, true, false, true, false, true, true]
            );
            assert!(!may(render) && may(device(DeviceKind::Character, 226, 129)));
            assert!(may(device(DeviceKind::Block, 195, 0)) && may(device(DeviceKind::Character, 1, 3)));
        }
    }
}
