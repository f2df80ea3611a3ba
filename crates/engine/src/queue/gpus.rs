//! The GPUs of a queue by class, and the devices of its jobs.

use std::collections::{BTreeMap, BTreeSet};

use miserly_api::model::{Problem, Submission};
use miserly_core::devices::{
    CellId, DeviceClass, DeviceDemand, DeviceError, DeviceGroup, DeviceRequest, DeviceTable, HeldDevices,
};
use miserly_core::{Entry, HostId, Ledger, Placement, Request, Resources, State};
use serde::{Deserialize, Serialize};

use crate::request::problems::refused_field;
use crate::{Queue, Record};

/// The only host of a pool.
const HOST: HostId = HostId(0);

/// The GPUs that the jobs of a queue may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct QueueGpus {
    /// The GPUs by class, in the order of their first indexes.
    pub groups: Vec<GpuGroup>,
    /// Whether the policy plans them by class. Else it plans their number, and a job gets any of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_class: bool,
}

/// GPUs that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct GpuGroup {
    /// The type by which jobs request them.
    #[serde(rename = "type")]
    pub name: String,
    /// The memory of each, in kB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The type of the GPU of which each is a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Whether jobs may share one by its memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares: bool,
    /// The number of them on the same GPU.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub parts: u32,
    /// Their indexes among the GPUs of the machine.
    pub indexes: Vec<u32>,
}

const fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(parts: &u32) -> bool {
    *parts == 1
}

impl GpuGroup {
    fn devices(&self) -> DeviceGroup {
        let GpuGroup { name, memory, part_of, shares, parts, indexes } = self.clone();
        let count = u32::try_from(indexes.len()).unwrap_or(u32::MAX);
        DeviceGroup { class: DeviceClass { name, memory, part_of, shares }, count, parts }
    }
}

impl QueueGpus {
    /// Returns whether the GPUs differ, or some are given in shares: a number does not describe them.
    pub fn need_classes(&self) -> bool {
        let kinds: Vec<DeviceClass> = self.groups.iter().map(|group| group.devices().class).collect();
        kinds.windows(2).any(|pair| pair[0] != pair[1]) || kinds.iter().any(|class| class.shares)
    }

    /// Returns the same GPUs, planned as a number.
    pub(crate) fn counted(&self) -> QueueGpus {
        QueueGpus { groups: self.groups.clone(), by_class: false }
    }

    /// Returns the table of the devices.
    ///
    /// # Errors
    /// If there are too many classes.
    pub fn table(&self) -> Result<DeviceTable, DeviceError> {
        DeviceTable::new(&[self.groups.iter().map(GpuGroup::devices).collect()])
    }

    /// Returns the devices that a job of the queue requests, if its policy plans them by class.
    ///
    /// A type `a100` is also that of GPUs whose driver names them `a100-sxm4-80gb`.
    ///
    /// # Errors
    /// If no device of the queue could ever meet the request.
    pub(crate) fn demand(
        &self,
        queue: &str,
        submission: &Submission,
    ) -> Result<Option<DeviceDemand>, Problem> {
        let Submission { gpu_type, gpu_memory, .. } = submission;
        let field = if gpu_memory.is_some() { "gpu_memory" } else { "gpu_type" };
        let refused = |problem: String| refused_field(field, problem);
        let Some(count) = u32::try_from(submission.gpu_count()).ok().filter(|count| *count > 0) else {
            return Ok(None);
        };
        let table = self.table().map_err(|error| refused(error.to_string()))?;
        let names = || table.types().join(", ");
        let mut types = vec![];
        for wanted in gpu_type.iter().flat_map(|types| types.split('|')) {
            let before = types.len();
            types.extend(table.types().into_iter().filter(|name| is_of_type(name, wanted)));
            if types.len() == before {
                return Err(refused(format!("GPUs of type {wanted}: there is {}", names())));
            }
        }
        let memory = gpu_memory.map(|bytes| bytes.div_ceil(1024));
        if memory.is_some() && table.classes().iter().all(|class| class.memory.is_none()) {
            let problem =
                "the daemon does not know the memory of its GPUs (memory in [[gpu]] of its configuration)";
            return Err(refused(problem.to_owned()));
        }
        let request = DeviceRequest { types, count, memory, share: submission.is_gpu_share() };
        let demand = table.demand(&request).map_err(|error| refused(in_words(&error)))?;
        let is_any = (0..table.classes().len()).all(|class| demand.classes().has(class));
        if !self.by_class {
            let is_chosen = gpu_type.is_some() || memory.is_some();
            return if is_any || !is_chosen {
                Ok(None)
            } else {
                Err(refused(format!(
                    "queue {queue} has {}, and a job gets any of them; request a number, or ask the operators for a policy that \
                     plans GPUs by type, such as easy or conservative",
                    names()
                )))
            };
        }
        match table.choose(HOST, demand, |cell| table.cell(cell).most) {
            Some(_) => Ok(Some(demand)),
            None => Err(refused_field(
                "gpus",
                format!("{count} GPUs: queue {queue} has fewer of one type; it has {}", self.counts()),
            )),
        }
    }

    /// Returns the number of GPUs of each type, in words.
    fn counts(&self) -> String {
        let mut counts: Vec<(&str, usize)> = vec![];
        for group in &self.groups {
            match counts.iter_mut().find(|(name, _)| *name == group.name) {
                Some((_, count)) => *count += group.indexes.len(),
                None => counts.push((&group.name, group.indexes.len())),
            }
        }
        let words: Vec<String> = counts.iter().map(|(name, count)| format!("{name}:{count}")).collect();
        words.join(", ")
    }

    /// Returns the index of each device, by position on the host.
    pub(crate) fn indexes(&self) -> Vec<u32> {
        self.groups.iter().flat_map(|group| group.indexes.iter().copied()).collect()
    }

    /// Returns the indexes of the GPUs that a placement holds.
    pub(crate) fn indexes_of(&self, placement: &Placement) -> Vec<u32> {
        let (Ok(table), all) = (self.table(), self.indexes()) else { return vec![] };
        let mut indexes = vec![];
        for held in placement.devices() {
            let Some(cell) = table.cells().get(held.cell.index()) else { continue };
            let at = held.positions().filter_map(|at| usize::try_from(cell.first + at).ok());
            indexes.extend(at.filter_map(|at| all.get(at)));
        }
        indexes
    }

    /// Returns the cell and the position of each of these GPUs that the queue has, one bit each, by cell.
    pub(crate) fn cells_of(&self, indexes: &BTreeSet<u32>) -> BTreeMap<CellId, u64> {
        let (Ok(table), all) = (self.table(), self.indexes()) else { return BTreeMap::new() };
        let mut cells = BTreeMap::new();
        for (id, cell) in (0..).map(CellId).zip(table.cells()) {
            let count = if cell.shares { 1 } else { cell.most };
            let names = (0..64).filter(|at| *at < count).filter(|at| {
                let at = usize::try_from(u64::from(cell.first) + at).ok();
                at.and_then(|at| all.get(at)).is_some_and(|index| indexes.contains(index))
            });
            let names = names.fold(0, |all, at| all | 1_u64 << at);
            if names != 0 {
                cells.insert(id, names);
            }
        }
        cells
    }

    /// Returns the devices that a job with a demand has, which runs on the GPUs with these indexes. Returns `None` if the demand
    /// is not met by them.
    fn held(&self, demand: DeviceDemand, indexes: &[u32]) -> Option<Vec<HeldDevices>> {
        let table = self.table().ok()?;
        let held = |(id, names): (CellId, u64)| {
            let cell = table.cell(id);
            let amount = match demand {
                DeviceDemand::Share { amount, .. } => amount.of(cell.most),
                DeviceDemand::Whole { .. } if cell.shares => cell.most,
                DeviceDemand::Whole { .. } => names.count_ones().into(),
            };
            HeldDevices { cell: id, amount, names }
        };
        let all: Vec<HeldDevices> =
            self.cells_of(&indexes.iter().copied().collect()).into_iter().map(held).collect();
        table.is_of(HOST, Some(demand), &all).then_some(all)
    }
}

impl Queue {
    /// Returns the GPUs of the queue, if its policy plans them by class.
    pub(crate) fn classed_gpus(&self) -> Option<&QueueGpus> {
        self.gpus.as_deref().filter(|gpus| gpus.by_class)
    }

    /// Returns the indexes of the lost GPUs of a ledger of the queue.
    pub(crate) fn lost_gpus(&self, ledger: &Ledger) -> Vec<u32> {
        let (Some(gpus), Some(table)) = (self.classed_gpus(), ledger.machine().devices()) else {
            return vec![];
        };
        let lost = table.lost().into_iter();
        let held = lost.map(|(cell, names)| HeldDevices { cell, amount: 0, names }).collect();
        gpus.indexes_of(&Placement::on_plain(Resources::NONE).with_devices(held))
    }

    /// Returns the devices that a job requests.
    ///
    /// # Errors
    /// If the queue can never meet the request.
    pub(crate) fn device_demand(&self, submission: &Submission) -> Result<Option<DeviceDemand>, Problem> {
        match &self.gpus {
            Some(gpus) => gpus.demand(&self.name, submission),
            None if submission.gpu_type.is_some() => Err(refused_field(
                "gpu_type",
                "the daemon knows no types of GPUs ([[gpu]] of its configuration); request a number"
                    .to_owned(),
            )),
            None if submission.gpu_memory.is_some() => Err(refused_field(
                "gpu_memory",
                "the daemon does not know the memory of its GPUs (memory in [[gpu]] of its configuration)"
                    .to_owned(),
            )),
            None => Ok(None),
        }
    }
}

impl Record {
    /// Returns the entry of the job in a queue with other GPUs than those for which it was made.
    ///
    /// # Errors
    /// If the job cannot run, or run on, with them: the rest of a sentence after the job number.
    pub(crate) fn entry_with_gpus(&self, entry: Entry, queue: &Queue) -> Result<Entry, String> {
        let demand = queue.device_demand(&self.submission);
        let demand = demand.map_err(|problem| format!("could not run: {}", problem.message))?;
        let devices = demand.filter(|_| queue.classed_gpus().is_some());
        let mut entry = Entry { request: Request { devices, ..entry.request }, planned_on: None, ..entry };
        if let State::Running { placement, .. } | State::Suspended { placement, .. } = &mut entry.state {
            let indexes = self.run.as_ref().map(|run| run.gpus.clone()).unwrap_or_default();
            // Other queues may have those that are not in this one.
            let has_all = |gpus: &QueueGpus| {
                let all = gpus.indexes();
                indexes.iter().all(|index| all.contains(index))
            };
            let held = match (devices, queue.classed_gpus()) {
                (Some(demand), Some(gpus)) => gpus.held(demand, &indexes),
                _ => queue.gpus.as_deref().is_none_or(has_all).then(Vec::new),
            };
            let held = held.ok_or_else(|| {
                format!(
                    "runs on the GPUs {indexes:?}, which are not in queue {} or of another type",
                    queue.name
                )
            })?;
            *placement = placement.clone().with_devices(held);
        }
        Ok(entry)
    }
}

/// Returns an error in the words of users.
fn in_words(error: &DeviceError) -> String {
    let text = |kilobytes: &u64| miserly_units::memory(kilobytes.saturating_mul(1024));
    match error {
        DeviceError::Memory { memory, most } => {
            format!("no GPU has {} of memory; the most is {}", text(memory), text(most))
        }
        other => other.to_string(),
    }
}

/// Returns whether a GPU of a type meets a request for a type.
fn is_of_type(name: &str, wanted: &str) -> bool {
    let rest = name.get(..wanted.len()).filter(|start| start.eq_ignore_ascii_case(wanted));
    let rest = rest.and_then(|_| name.get(wanted.len()..));
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(|rest| !is_profile(rest)))
}

/// Returns whether the end of a type is the profile of a part of a GPU, such as `3g.40gb`: a part is no whole GPU.
fn is_profile(text: &str) -> bool {
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with("g.")
}
