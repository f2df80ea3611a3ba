//! Requests, as they are stored.

use std::num::NonZeroU32;

use miserly_core::devices::{ClassSet, DeviceDemand, ShareAmount};
use miserly_core::{Constraints, Form, HostGroup, Kind, Request, Resources, Sizes, Span, Time};
use serde::{Deserialize, Serialize};

/// A stored request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedRequest {
    /// The job number.
    pub number: i64,
    /// The instant of the submission, in ticks.
    pub submit: i64,
    /// The time for which its resources are planned, in ticks.
    pub estimate: i64,
    /// The processors.
    pub cpus: u64,
    /// The memory, in kilobytes.
    pub memory: u64,
    /// The GPUs.
    #[serde(default)]
    pub gpus: u64,
    /// The resource that the site defines.
    #[serde(default)]
    pub other: u64,
    /// The devices by class, if it requests any of a machine that plans them so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<SavedDevices>,
    /// The form over several hosts, unless it is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<SavedForm>,
    /// The user, by number.
    pub user: Option<u32>,
    /// The group of the user, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// The position of the queue.
    pub queue: Option<u32>,
    /// The earliest start, in ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<i64>,
    /// The deadline, in ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// Whether it must not run opportunistically.
    #[serde(default)]
    pub in_window_only: bool,
    /// Whether it must not run for a first quantum.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_quantum: bool,
    /// Whether its work may be repeated.
    #[serde(default)]
    pub restartable: bool,
    /// The least and the most processors between which it may be resized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<[u64; 2]>,
}

/// A stored demand for devices. The classes are those of the machine, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedDevices {
    /// Whole devices: their number, and the classes.
    Whole(u32, u64),
    /// Memory of one device, in kB, and the classes.
    Memory(u64, u64),
    /// Thousandths of the memory of one device, and the classes.
    Thousandths(u32, u64),
}

impl SavedDevices {
    fn new(demand: DeviceDemand) -> SavedDevices {
        let classes = demand.classes().bits();
        match demand {
            DeviceDemand::Whole { count, .. } => SavedDevices::Whole(count, classes),
            DeviceDemand::Share { amount: ShareAmount::Memory(memory), .. } => {
                SavedDevices::Memory(memory, classes)
            }
            DeviceDemand::Share { amount: ShareAmount::Thousandths(part), .. } => {
                SavedDevices::Thousandths(part, classes)
            }
        }
    }

    fn demand(self) -> DeviceDemand {
        let share = |amount, classes| DeviceDemand::Share { amount, classes: ClassSet::from_bits(classes) };
        match self {
            SavedDevices::Whole(count, classes) => {
                DeviceDemand::Whole { count, classes: ClassSet::from_bits(classes) }
            }
            SavedDevices::Memory(memory, classes) => share(ShareAmount::Memory(memory), classes),
            SavedDevices::Thousandths(part, classes) => share(ShareAmount::Thousandths(part), classes),
        }
    }
}

/// A stored form of a job over several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedForm {
    /// The number of equal parts, if it is not that of the processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<NonZeroU32>,
    /// Whether each part needs a host of its own.
    #[serde(default)]
    pub apart: bool,
    /// Whether the job has its hosts to itself.
    #[serde(default)]
    pub alone: bool,
    /// The number of the group of its hosts, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u16>,
}

impl SavedForm {
    /// Returns the stored form, or `None` for the default.
    fn new(form: Form) -> Option<SavedForm> {
        let Form { parts, apart, alone, group } = form;
        let group = group.map(|HostGroup(group)| group);
        (form != Form::ANY).then_some(SavedForm { parts, apart, alone, group })
    }

    fn form(self) -> Form {
        let SavedForm { parts, apart, alone, group } = self;
        Form { parts, apart, alone, group: group.map(HostGroup) }
    }
}

impl SavedRequest {
    /// Returns the stored form of a request.
    pub fn new(request: &Request) -> SavedRequest {
        let Constraints { begin, deadline, in_window_only, no_quantum, restartable } = request.constraints;
        SavedRequest {
            number: request.number,
            submit: request.submit.ticks(),
            estimate: request.estimate.ticks(),
            cpus: request.demand.cpus_count().get(),
            memory: request.demand.get(Kind::Memory),
            gpus: request.demand.get(Kind::Gpus),
            other: request.demand.get(Kind::Other),
            devices: request.devices.map(SavedDevices::new),
            form: SavedForm::new(request.form),
            user: request.user,
            group: request.group,
            queue: request.queue,
            begin: begin.map(Time::ticks),
            deadline: deadline.map(Time::ticks),
            in_window_only,
            no_quantum,
            restartable,
            sizes: request.sizes.map(|sizes| [sizes.least.get(), sizes.most.get()]),
        }
    }

    /// Returns the request.
    pub fn request(&self) -> Request {
        let demand = Resources::cpus(self.cpus)
            .with(Kind::Memory, self.memory)
            .with(Kind::Gpus, self.gpus)
            .with(Kind::Other, self.other);
        let (submit, estimate) = (Time::from_ticks(self.submit), Span::from_ticks(self.estimate));
        let constraints = Constraints {
            begin: self.begin.map(Time::from_ticks),
            deadline: self.deadline.map(Time::from_ticks),
            in_window_only: self.in_window_only,
            no_quantum: self.no_quantum,
            restartable: self.restartable,
        };
        Request {
            devices: self.devices.map(SavedDevices::demand),
            form: self.form.map_or(Form::ANY, SavedForm::form),
            user: self.user,
            group: self.group,
            queue: self.queue,
            sizes: self.sizes.map(|[least, most]| Sizes { least: least.into(), most: most.into() }),
            constraints,
            ..Request::new(self.number, submit, estimate, demand)
        }
    }
}
