//! The GPUs of the machine: those that the kernel has, and those that the configuration lists.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miserly_api::model::is_gpu_type;
use miserly_core::Kind;
use miserly_core::devices::{DeviceClass, DeviceGroup};
use miserly_engine::{GpuGroup, QueueGpus};
use miserly_executor::GpuDevice;
use miserly_machine_file::gpu::{GpuFile, device_groups_of};
use miserly_policies::PolicySpec;
use toml::Spanned;

use super::error::{Problem, of_field};
use super::file::File;
use super::{Configuration, Machine, Queue};

/// The most GPUs of an entry.
const MOST: i64 = 1024;

/// The type of GPUs of an unknown type, beside others.
const OTHER: &str = "other";

/// The text in a path of a device node that stands for the index of the GPU.
const INDEX: &str = "{}";

/// A GPU of the machine, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// The class, if its type is known.
    pub class: Option<DeviceClass>,
    /// The number of its kind on the same GPU: 1, if it is no part.
    pub parts: u32,
    /// The only queue whose jobs may have it.
    pub queue: Option<String>,
    /// The device nodes through which programs use it, and its UUID; without nodes if they are not known.
    pub device: GpuDevice,
}

impl Configuration {
    /// Returns the devices of all GPUs, by index, if the device nodes of each are known.
    pub(crate) fn gpu_devices(&self) -> Option<Vec<GpuDevice>> {
        let known = |gpu: &Gpu| Some(gpu.device.clone()).filter(|device| !device.nodes.is_empty());
        let all = self.gpus.iter().map(known).collect::<Option<Vec<_>>>()?;
        Some(all).filter(|all| !all.is_empty())
    }
}

impl Configuration {
    /// Returns what the executor uses of the GPUs: their nodes, and the UUIDs of parts. The driver may name whole ones only later.
    pub(crate) fn hidden_gpus(&self) -> Vec<GpuDevice> {
        let used = |gpu: &Gpu| {
            let uuid = gpu.device.uuid.clone().filter(|uuid| uuid.starts_with("MIG-"));
            GpuDevice { nodes: gpu.device.nodes.clone(), uuid }
        };
        self.gpus.iter().map(used).collect()
    }
}

/// Returns the number of GPUs that a file lists, if it lists any.
pub(super) fn count(file: &File) -> Option<i64> {
    let count = |written: Option<&Spanned<i64>>| written.map_or(1, |count| *count.get_ref());
    let of = |written: &Spanned<GpuFile>| {
        let parts = written.get_ref().parts.iter().map(|part| count(part.get_ref().count.as_ref()));
        let each = if written.get_ref().parts.is_empty() { 1 } else { parts.fold(0, i64::saturating_add) };
        count(written.get_ref().count.as_ref()).saturating_mul(each)
    };
    (!file.gpus.is_empty()).then(|| file.gpus.iter().map(of).fold(0, i64::saturating_add))
}

/// Returns the GPUs of a machine whose pool has `pool` of them: those that the file lists, else those that the kernel has.
///
/// A listed GPU without device nodes has those of the GPU of the kernel with its index. A pool with more GPUs than the kernel
/// has knows none of them.
pub(super) fn checked(file: &File, pool: u64, machine: &Machine) -> Result<Vec<Gpu>, Problem> {
    let has_enough = |gpus: &[Gpu]| pool > 0 && gpus.len() as u64 >= pool;
    if file.gpus.is_empty() {
        return Ok(Some(machine.gpus.clone()).filter(|gpus| has_enough(gpus)).unwrap_or_default());
    }
    let mut gpus: Vec<Gpu> = vec![];
    let mut first = 0;
    for written in &file.gpus {
        first = listed(written, machine, first, &mut gpus)?;
    }
    let at = file.pool.as_ref().and_then(|pool| pool.get_ref().gpus.as_ref());
    match at {
        Some(at) if !has_enough(&gpus) && pool > 0 => {
            let problem = format!("gpus = {pool}: the tables [[gpu]] list {}", gpus.len());
            Err(Problem::new(at.span(), problem))
        }
        _ => Ok(Some(gpus).filter(|gpus| has_enough(gpus)).unwrap_or_default()),
    }
}

/// Adds the GPUs of a table to those before it, or their parts. `first` is the number of GPUs in the tables before.
fn listed(
    written: &Spanned<GpuFile>,
    machine: &Machine,
    first: usize,
    gpus: &mut Vec<Gpu>,
) -> Result<usize, Problem> {
    let file = written.get_ref();
    let groups = match &file.kind {
        Some(_) => device_groups_of("[[gpu]]", written)?,
        None if file.memory.is_some() || file.shares || !file.parts.is_empty() => {
            let problem = "[[gpu]]: memory, shares and parts need its type; write type = \"a100\"";
            return Err(Problem::new(written.span(), problem));
        }
        None => vec![],
    };
    let number = file.count.as_ref().map_or(1, |count| *count.get_ref());
    if let Some(count) = file.count.as_ref().filter(|_| !(1..=MOST).contains(&number)) {
        return Err(of_field(count, "count", &format!("it is 1 to {MOST}")));
    }
    let number = usize::try_from(number).unwrap_or(1);
    check_names(&file.nodes, file.uuid.as_ref(), number)?;
    for part in file.parts.iter().map(Spanned::get_ref) {
        let count = part.count.as_ref().map_or(1, |count| *count.get_ref());
        check_names(&part.nodes, part.uuid.as_ref(), number * usize::try_from(count).unwrap_or(1))?;
    }
    for index in first..first + number {
        let found = machine.gpus.get(index).cloned().unwrap_or_else(Gpu::unknown);
        let nodes = nodes_of(&file.nodes, index).unwrap_or(found.device.nodes);
        let uuid = file.uuid.as_ref().map(|uuid| uuid.get_ref().clone());
        let uuid = uuid.or(found.device.uuid.filter(|_| file.nodes.is_empty()));
        let whole = Gpu {
            class: groups.first().map(|group| group.class.clone()).or(found.class),
            queue: file.queue.as_ref().map(|queue| queue.get_ref().clone()),
            device: GpuDevice { nodes, uuid },
            parts: 1,
        };
        if file.parts.is_empty() {
            add(written, whole, gpus)?;
            continue;
        }
        for (part, group) in file.parts.iter().map(Spanned::get_ref).zip(&groups) {
            for _ in 0..group.parts {
                let mut nodes = whole.device.nodes.clone();
                nodes.extend(nodes_of(&part.nodes, index).unwrap_or_default());
                let uuid = part.uuid.as_ref().map(|uuid| uuid.get_ref().clone());
                let (class, device) = (Some(group.class.clone()), GpuDevice { nodes, uuid });
                add(written, Gpu { class, parts: group.parts, device, queue: whole.queue.clone() }, gpus)?;
            }
        }
    }
    Ok(first + number)
}

/// Checks the device nodes and the UUID of a number of GPUs.
fn check_names(
    nodes: &[Spanned<String>],
    uuid: Option<&Spanned<String>>,
    number: usize,
) -> Result<(), Problem> {
    for node in nodes {
        if !node.get_ref().starts_with("/dev/") {
            let problem = format!("{:?} is no device node, such as /dev/nvidia0", node.get_ref());
            return Err(of_field(node, "nodes", &problem));
        }
        if number > 1 && !node.get_ref().contains(INDEX) {
            let problem = format!(
                "{:?} would be the node of {number} GPUs; write {INDEX} for the index of the GPU, such as /dev/nvidia{INDEX}, or a \
                 table for each GPU",
                node.get_ref()
            );
            return Err(of_field(node, "nodes", &problem));
        }
    }
    match uuid {
        Some(uuid) if number > 1 => {
            Err(of_field(uuid, "uuid", &"each GPU has its own; write a table for each"))
        }
        _ => Ok(()),
    }
}

/// Returns the written nodes of the GPU with an index, if there are any.
fn nodes_of(nodes: &[Spanned<String>], index: usize) -> Option<Vec<PathBuf>> {
    let node = |node: &Spanned<String>| PathBuf::from(node.get_ref().replace(INDEX, &index.to_string()));
    (!nodes.is_empty()).then(|| nodes.iter().map(node).collect())
}

/// Adds a GPU of a table, if it is none of those before it.
fn add(written: &Spanned<GpuFile>, gpu: Gpu, gpus: &mut Vec<Gpu>) -> Result<(), Problem> {
    let index = gpus.len();
    if let Some(other) = gpus.iter().position(|other| is_same(&other.device, &gpu.device)) {
        let problem = format!(
            "GPU {index} is GPU {other} again; give each its own nodes, or for MIG its own uuid and nodes"
        );
        return Err(Problem::new(written.span(), problem));
    }
    gpus.push(gpu);
    Ok(())
}

impl Gpu {
    /// Returns a GPU of which nothing is known.
    fn unknown() -> Gpu {
        Gpu { class: None, parts: 1, queue: None, device: GpuDevice::default() }
    }

    /// Returns a whole GPU of a detected type.
    fn detected(name: Option<String>, device: GpuDevice) -> Gpu {
        let class = name.map(|name| DeviceClass { name, memory: None, part_of: None, shares: false });
        Gpu { class, device, ..Gpu::unknown() }
    }
}

/// Gives each queue the GPUs that its jobs may have: those of the tables with its name, or all.
///
/// They are planned by class, if they differ or are given in shares, and the policy plans devices.
pub(super) fn assign(file: &File, gpus: &[Gpu], queues: &mut [Queue]) -> Result<(), Problem> {
    let number = |queue: &Queue| usize::try_from(queue.pool.most().get(Kind::Gpus)).unwrap_or(usize::MAX);
    let written = |at: usize| file.queues.get(at).map_or(0..0, |queue| queue.get_ref().name.span());
    let tables = || file.gpus.first().map(Spanned::span).unwrap_or_default();
    let has_names = gpus.iter().any(|gpu| gpu.queue.is_some());
    if let Some(queue) = file
        .gpus
        .iter()
        .filter_map(|gpu| gpu.get_ref().queue.as_ref())
        .find(|named| queues.iter().all(|queue| queue.name != **named.get_ref()))
    {
        return Err(of_field(queue, "queue", &format!("there is no queue {:?}", queue.get_ref())));
    }
    if has_names && gpus.iter().any(|gpu| gpu.queue.is_none()) {
        let problem = "[[gpu]]: some tables have a queue; write the queue of each";
        return Err(Problem::new(tables(), problem));
    }
    let with_gpus = queues.iter().filter(|queue| number(queue) > 0).count();
    for (at, queue) in queues.iter_mut().enumerate() {
        let mine = |gpu: &Gpu| gpu.queue.as_ref().is_none_or(|name| *name == queue.name);
        let all = gpus.iter().zip(0_u32..).filter(|(gpu, _)| mine(gpu));
        let count = number(queue);
        if has_names && all.clone().count() != count {
            let problem = format!(
                "queue {:?}: gpus = {count}, and the tables [[gpu]] give it {}; write the same number",
                queue.name,
                all.count()
            );
            return Err(Problem::new(written(at), problem));
        }
        // Several queues share the GPUs of the pool by number.
        let is_own = has_names || with_gpus == 1;
        let most = if is_own { count } else { gpus.len() };
        let is_known = has_names || gpus.iter().any(|gpu| gpu.class.is_some());
        let known = QueueGpus { groups: groups(all.take(most)), by_class: false };
        if count == 0 || !is_known {
            continue;
        }
        known.table().map_err(|error| Problem::new(tables(), error.to_string()))?;
        let shares = known.groups.iter().any(|group| group.shares);
        let plans = |policy: &PolicySpec| policy.needs().devices;
        let unable =
            [Some(&queue.policy), queue.shadow.as_ref()].into_iter().flatten().find(|policy| !plans(policy));
        match unable {
            Some(policy) if shares => {
                let problem = format!(
                    "queue {:?}: policy {policy} plans GPUs as a number, and some are given in shares; use another policy, such as \
                     easy, conservative or miser",
                    queue.name
                );
                return Err(Problem::new(written(at), problem));
            }
            _ if shares && !is_own => {
                let problem = "[[gpu]]: several queues have GPUs, and some are given in shares; write the queue of each table";
                return Err(Problem::new(tables(), problem));
            }
            _ => {}
        }
        let by_class = is_own && unable.is_none() && known.need_classes();
        queue.gpus = Some(Arc::new(QueueGpus { by_class, ..known }));
    }
    Ok(())
}

/// Returns GPUs by class, in the order of their indexes. Those of an unknown type are of the type `other`.
fn groups<'a>(gpus: impl Iterator<Item = (&'a Gpu, u32)>) -> Vec<GpuGroup> {
    let mut groups: Vec<GpuGroup> = vec![];
    for (gpu, index) in gpus {
        let class = gpu.class.clone();
        let (name, memory, part_of, shares) = class.map_or((OTHER.to_owned(), None, None, false), |class| {
            (class.name, class.memory, class.part_of, class.shares)
        });
        let group = GpuGroup { name, memory, part_of, shares, parts: gpu.parts, indexes: vec![] };
        let has_room = |other: &&mut GpuGroup| other.indexes.len() < DeviceGroup::MOST as usize;
        let is_alike = |other: &&mut GpuGroup| GpuGroup { indexes: vec![], ..(**other).clone() } == group;
        match groups.iter_mut().filter(is_alike).find(has_room) {
            Some(group) => group.indexes.push(index),
            None => groups.push(GpuGroup { indexes: vec![index], ..group }),
        }
    }
    groups
}

/// Returns whether two GPUs are one device: they have one UUID, or the same nodes.
fn is_same(one: &GpuDevice, other: &GpuDevice) -> bool {
    match (&one.uuid, &other.uuid) {
        (Some(one), Some(other)) => one == other,
        _ => !one.nodes.is_empty() && one.nodes == other.nodes,
    }
}

/// Returns the GPUs of NVIDIA and AMD that the kernel has, under the root of its files: by the addresses of NVIDIA's, and then
/// AMD's.
pub(super) fn detected(root: &Path) -> Vec<Gpu> {
    let nvidia =
        entries(&root.join("proc/driver/nvidia/gpus")).into_iter().map(|folder| nvidia(root, &folder));
    let amd = entries(&root.join("sys/class/kfd/kfd/topology/nodes")).into_iter();
    nvidia.chain(amd.filter_map(|folder| amd_gpu(root, &folder))).collect()
}

/// Returns a GPU of NVIDIA, whose driver has a folder for it.
fn nvidia(root: &Path, folder: &Path) -> Gpu {
    let information = fs::read_to_string(folder.join("information")).unwrap_or_default();
    let value = |key: &str| {
        let value =
            information.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'));
        value.map(str::trim).filter(|value| !value.is_empty() && !value.contains('?'))
    };
    let minor = value("Device Minor").and_then(|minor| minor.parse::<u32>().ok());
    let address = folder.file_name().unwrap_or_default();
    let nodes = minor.map(|minor| format!("/dev/nvidia{minor}").into());
    let graphics = entries(&root.join("sys/bus/pci/devices").join(address).join("drm"));
    Gpu::detected(
        value("Model").and_then(type_name),
        GpuDevice {
            // Without its own node nothing is known that would hide it.
            nodes: nodes.map_or_else(Vec::new, |node| {
                std::iter::once(node)
                    .chain(graphics.iter().filter_map(|folder| graphics_node(folder)))
                    .collect()
            }),
            uuid: value("GPU UUID").map(str::to_owned),
        },
    )
}

/// Returns a GPU of AMD; `None` for a processor, which has such a folder, too.
fn amd_gpu(root: &Path, folder: &Path) -> Option<Gpu> {
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    if matches!(read("gpu_id").trim(), "" | "0") {
        return None;
    }
    let properties = read("properties");
    let minor =
        properties.lines().find_map(|line| line.strip_prefix("drm_render_minor ")?.trim().parse().ok());
    let minor = minor.filter(|minor: &u32| *minor > 0);
    let graphics = minor.map(|minor| root.join(format!("sys/class/drm/renderD{minor}/device/drm")));
    let mut nodes: Vec<PathBuf> = graphics
        .iter()
        .flat_map(|folder| entries(folder))
        .filter_map(|folder| graphics_node(&folder))
        .collect();
    let render = minor.map(|minor| PathBuf::from(format!("/dev/dri/renderD{minor}")));
    nodes.extend(render.filter(|node| !nodes.contains(node)));
    let model = minor.map(|minor| root.join(format!("sys/class/drm/renderD{minor}/device/product_name")));
    let model = model.and_then(|path| fs::read_to_string(path).ok());
    Some(Gpu::detected(model.as_deref().and_then(type_name), GpuDevice { nodes, uuid: None }))
}

/// Returns the node of a folder of the direct rendering manager: `card0` or `renderD128`.
fn graphics_node(folder: &Path) -> Option<PathBuf> {
    let name = folder.file_name()?.to_str()?;
    (name.starts_with("card") || name.starts_with("renderD")).then(|| Path::new("/dev/dri").join(name))
}

/// Returns the name of a type for the model of a GPU: `a100-sxm4-80gb` for `NVIDIA A100-SXM4-80GB`.
fn type_name(model: &str) -> Option<String> {
    let lower = model.trim().to_ascii_lowercase();
    let makers = ["nvidia ", "amd ", "geforce ", "tesla ", "instinct ", "radeon "];
    let name = makers.into_iter().fold(&*lower, |name, maker| name.strip_prefix(maker).unwrap_or(name));
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '_' || letter == '.' { letter } else { '-' }
    };
    let name: String = name.trim().chars().map(plain).collect();
    Some(name).filter(|name| is_gpu_type(name))
}

/// Returns the entries of a folder, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::ConfigError;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn paths(nodes: &[&str]) -> Vec<PathBuf> {
        nodes.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_kernel_lists_gpus_of_nvidia_and_amd() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(detected(root.path()), []);
        let nvidia = |address: &str, text: &str| {
            write(root.path(), &format!("proc/driver/nvidia/gpus/{address}/information"), text);
        };
        nvidia(
            "0000:c1:00.0",
            "Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 16\nGPU UUID: \t GPU-1f\nDevice Minor: \t 1\nGPU Excluded:\t No\n",
        );
        nvidia("0000:01:00.0", "Model: \t\t Tesla T4\nGPU UUID: \t GPU-????????\nDevice Minor: \t 0\n");
        nvidia("0000:e1:00.0", "");
        write(root.path(), "sys/bus/pci/devices/0000:c1:00.0/drm/renderD129/dev", "226:129\n");
        for (node, id, properties) in
            [("0", "0\n", ""), ("1", "4711\n", "vendor_id 4098\ndrm_render_minor 130\n"), ("2", "815\n", "")]
        {
            let folder = format!("sys/class/kfd/kfd/topology/nodes/{node}");
            write(root.path(), &format!("{folder}/gpu_id"), id);
            write(root.path(), &format!("{folder}/properties"), properties);
        }
        write(root.path(), "sys/class/drm/renderD130/device/drm/card2/dev", "");
        write(root.path(), "sys/class/drm/renderD130/device/product_name", "AMD Instinct MI250X (rev 2)\n");
        let found: Vec<_> = detected(root.path())
            .into_iter()
            .map(|gpu| (gpu.class.map(|class| class.name), gpu.device.nodes, gpu.device.uuid))
            .collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                (some("t4"), paths(&["/dev/nvidia0"]), None),
                (some("a100-sxm4-80gb"), paths(&["/dev/nvidia1", "/dev/dri/renderD129"]), some("GPU-1f")),
                (None, vec![], None),
                (some("mi250x--rev-2-"), paths(&["/dev/dri/card2", "/dev/dri/renderD130"]), None),
                (None, vec![], None),
            ]
        );
    }

    fn parsed(text: &str, found: usize) -> Result<Configuration, ConfigError> {
        let gpu = |index: usize| {
            let nodes = vec![format!("/dev/nvidia{index}").into()];
            Gpu::detected(Some("t4".to_owned()), GpuDevice { nodes, uuid: None })
        };
        let machine =
            Machine { gpus: (0..found).map(gpu).collect(), ..Machine::new((0..8).collect(), 1 << 24) };
        Configuration::parse("daemon.toml", text, &machine)
    }

    #[track_caller]
    fn check(text: &str, found: usize, types: &[&str], nodes: Option<&[&str]>) {
        let configuration = parsed(text, found).unwrap();
        let groups =
            configuration.queues[0].gpus.as_ref().map(|gpus| gpus.groups.clone()).unwrap_or_default();
        let names = groups.iter().flat_map(|group| group.indexes.iter().map(|index| (*index, &*group.name)));
        let names: BTreeMap<u32, &str> = names.collect();
        assert_eq!(names.into_values().collect::<Vec<_>>(), types);
        let devices = configuration.gpu_devices();
        let devices = devices.map(|all| all.into_iter().flat_map(|device| device.nodes).collect::<Vec<_>>());
        assert_eq!(devices, nodes.map(paths));
    }

    #[test]
    fn listed_gpus_are_those_of_the_pool_and_have_the_nodes_of_the_kernel() {
        check("", 2, &[], None);
        check("[pool]\ngpus = 2\n", 0, &[], None);
        check("[pool]\ngpus = 1\n", 2, &["t4"], Some(&["/dev/nvidia0", "/dev/nvidia1"]));
        check("[pool]\ngpus = 3\n", 2, &[], None);
        check(
            "[[gpu]]\ntype = \"a100\"\ncount = 2\n",
            2,
            &["a100", "a100"],
            Some(&["/dev/nvidia0", "/dev/nvidia1"]),
        );
        check("[[gpu]]\ntype = \"a100\"\ncount = 2\n", 1, &["a100", "a100"], None);
        let own = "[[gpu]]\ncount = 2\nnodes = [\"/dev/nvidia{}\"]\n[[gpu]]\ntype = \"mi\"\nnodes = [\"/dev/dri/renderD128\"]\n";
        check(
            own,
            0,
            &["other", "other", "mi"],
            Some(&["/dev/nvidia0", "/dev/nvidia1", "/dev/dri/renderD128"]),
        );
        check(&format!("{own}[pool]\ngpus = 0\n"), 0, &[], None);
    }

    const SHARED: &str =
        "[[gpu]]\ntype = \"t4\"\nmemory = \"16GiB\"\ncount = 2\nshares = true\nnodes = [\"/dev/t{}\"]\n";

    #[test]
    fn parts_and_shares_are_planned_by_class() {
        let parts = "[[gpu]]\ntype = \"a100\"\ncount = 1\nnodes = [\"/dev/a{}\"]\nparts = [\n\
             { type = \"1g\", uuid = \"MIG-1\" }, { type = \"1g\", uuid = \"MIG-2\" }, { type = \"3g\", nodes = [\"/dev/c\"], uuid = \"MIG-3\" } ]\n";
        let text = format!("{SHARED}{parts}");
        check(
            &text,
            0,
            &["t4", "t4", "1g", "1g", "3g"],
            Some(&["/dev/t0", "/dev/t1", "/dev/a2", "/dev/a2", "/dev/a2", "/dev/c"]),
        );
        let gpus = parsed(&text, 0).unwrap().queues[0].gpus.clone().unwrap();
        let kinds = gpus.groups.iter().map(|group| (group.shares, group.part_of.as_deref(), group.memory));
        assert_eq!(
            kinds.collect::<Vec<_>>(),
            [(true, None, Some(16 << 20)), (false, Some("a100"), None), (false, Some("a100"), None)]
        );
        assert!(gpus.by_class);
        // A policy that plans no devices counts what is alike only by number.
        let counted = format!("{parts}[[queue]]\nname = \"a\"\npolicy = \"slurm\"\n");
        assert!(!parsed(&counted, 0).unwrap().queues[0].gpus.as_ref().unwrap().by_class);
        let two = format!(
            "[pool]\ngpus = 3\nmemory = \"8GiB\"\n{SHARED}queue = \"a\"\n[[gpu]]\ntype = \"mi\"\nqueue = \"b\"\n\
             [[queue]]\nname = \"a\"\ncpus = 2\nmemory = \"2GiB\"\ngpus = 2\n[[queue]]\nname = \"b\"\ncpus = 2\nmemory = \"2GiB\"\ngpus = 1\n"
        );
        let indexes = |queue: usize| {
            parsed(&two, 0).unwrap().queues[queue].gpus.as_ref().unwrap().groups[0].indexes.clone()
        };
        assert_eq!([indexes(0), indexes(1)], [vec![0, 1], vec![2]]);
        for (from, to, says) in [
            ("gpus = 2\n", "gpus = 1\n", "queue \"a\": gpus = 1, and the tables [[gpu]] give it 2"),
            ("queue = \"b\"\n", "", "some tables have a queue; write the queue of each"),
            ("queue = \"b\"", "queue = \"c\"", "queue: there is no queue \"c\""),
        ] {
            let problem = parsed(&two.replacen(from, to, 1), 0).unwrap_err().to_string();
            assert!(problem.contains(says), "{problem}");
        }
    }

    #[test]
    fn a_reload_compares_no_uuids_of_whole_gpus() {
        let found = |uuid: Option<&str>, node: &str| {
            let device = GpuDevice { nodes: vec![node.into()], uuid: uuid.map(str::to_owned) };
            let gpus = vec![Gpu::detected(Some("t4".to_owned()), device)];
            let machine = Machine { gpus, ..Machine::new((0..8).collect(), 1 << 24) };
            Configuration::parse("daemon.toml", "[pool]\ngpus = 1\n", &machine).unwrap().hidden_gpus()
        };
        let before = found(None, "/dev/nvidia0");
        assert_eq!(found(Some("GPU-1f"), "/dev/nvidia0"), before);
        assert_ne!(found(Some("MIG-1f"), "/dev/nvidia0"), before);
        assert_ne!(found(None, "/dev/nvidia1"), before);
    }

    #[test]
    fn wrong_gpus_are_refused_with_their_line() {
        for (text, says) in [
            ("[[gpu]]\ntype = \"a 100\"\n", "daemon.toml:2: [[gpu]]: gpu type \"a 100\": must be letters"),
            ("[[gpu]]\ncount = 0\n", "daemon.toml:2: count: it is 1 to 1024"),
            ("[[gpu]]\nnodes = [\"nvidia0\"]\n", "daemon.toml:2: nodes: \"nvidia0\" is no device node"),
            ("[[gpu]]\ncount = 2\nnodes = [\"/dev/nvidia0\"]\n", "would be the node of 2 GPUs"),
            ("[[gpu]]\ncount = 2\nuuid = \"MIG-1\"\n", "daemon.toml:3: uuid: each GPU has its own"),
            ("[pool]\ngpus = 3\n[[gpu]]\ncount = 2\n", "daemon.toml:2: gpus = 3: the tables [[gpu]] list 2"),
            ("[[gpu]]\nkind = \"a100\"\n", "kind"),
            ("[[gpu]]\nmemory = \"1GiB\"\n", "memory, shares and parts need its type"),
            ("[[gpu]]\ntype = \"a\"\nshares = true\n", "shares = true needs its memory"),
            (
                &format!("{SHARED}[[queue]]\nname = \"a\"\npolicy = \"slurm\"\n"),
                "queue \"a\": policy slurm plans GPUs as a number, and some are given in shares",
            ),
            (
                "[[gpu]]\ntype = \"a\"\nnodes = [\"/dev/a\"]\nparts = [{ type = \"b\", count = 2 }]\n",
                "GPU 1 is GPU 0 again",
            ),
        ] {
            let problem = parsed(text, 0).unwrap_err().to_string();
            assert!(problem.contains(says), "{problem}");
        }
    }
}
