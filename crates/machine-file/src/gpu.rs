//! The grammar of the GPUs of a host, and their check.

use miserly_core::devices::{DeviceClass, DeviceGroup};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::problem::Problem;
use crate::quantity::kilobytes;

/// GPUs of a host that are alike. It is a table `[[host.gpu]]` of a machine file, and `[[gpu]]` of a daemon.
///
/// ```toml
/// [[host.gpu]]
/// type = "a100"
/// memory = "80GiB"
/// count = 8
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GpuFile {
    /// The type by which jobs request them: letters, digits, `.`, `_` and `-`. A daemon detects a missing one.
    #[serde(rename = "type")]
    pub kind: Option<Spanned<String>>,
    /// The memory of each, with a unit. Unknown if missing.
    pub memory: Option<Spanned<Value>>,
    /// Their number. 1 if missing.
    pub count: Option<Spanned<i64>>,
    /// Whether jobs may share one by its memory.
    pub shares: bool,
    /// The parts (MIG instances) of each. Jobs then get the parts, and none gets a whole one.
    pub parts: Vec<Spanned<PartFile>>,
    /// The device nodes of each. Only a daemon uses them.
    pub nodes: Vec<Spanned<String>>,
    /// The UUID. Only a daemon uses it.
    pub uuid: Option<Spanned<String>>,
    /// The queue whose jobs may have them. Only a daemon uses it.
    pub queue: Option<Spanned<String>>,
}

/// Parts of a GPU that are alike.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartFile {
    /// The type by which jobs request them, such as `1g.10gb`.
    #[serde(rename = "type")]
    pub kind: Spanned<String>,
    /// The memory of each, with a unit. Unknown if missing.
    pub memory: Option<Spanned<Value>>,
    /// Their number on each GPU. 1 if missing.
    pub count: Option<Spanned<i64>>,
    /// The device nodes of each, besides those of the GPU. Only a daemon uses them.
    #[serde(default)]
    pub nodes: Vec<Spanned<String>>,
    /// The UUID. Only a daemon uses it.
    pub uuid: Option<Spanned<String>>,
}

/// Returns the devices of a host that these tables describe, in order. `of` begins the messages: `host "a"`.
///
/// # Errors
/// The first mistake.
pub fn device_groups(of: &str, gpus: &[Spanned<GpuFile>]) -> Result<Vec<DeviceGroup>, Problem> {
    let groups = gpus.iter().map(|gpu| device_groups_of(of, gpu)).collect::<Result<Vec<_>, _>>()?;
    Ok(groups.into_iter().flatten().collect())
}

/// Returns the devices of a table: the GPUs, or their parts by kind. `of` begins the messages.
///
/// # Errors
/// The first mistake.
pub fn device_groups_of(of: &str, written: &Spanned<GpuFile>) -> Result<Vec<DeviceGroup>, Problem> {
    let gpu = written.get_ref();
    let lacks_type =
        || Problem::new(written.span(), format!("{of}: gpu: write its type, such as type = \"a100\""));
    let kind = gpu.kind.as_ref().ok_or_else(lacks_type)?;
    let (kind, memory, count) = described(of, kind, gpu.memory.as_ref(), gpu.count.as_ref())?;
    let problem = |text: &str| Problem::new(written.span(), format!("{of}: gpu {kind:?}: {text}"));
    match (&gpu.parts[..], gpu.shares) {
        ([], shares) => {
            if shares && memory.is_none() {
                return Err(problem("shares = true needs its memory; write memory = \"80GiB\""));
            }
            Ok(vec![DeviceGroup {
                class: DeviceClass { name: kind, memory, part_of: None, shares },
                count,
                parts: 1,
            }])
        }
        (_, true) => Err(problem("has parts and shares = true; a part is not shared, so remove one of them")),
        (parts, false) => {
            let groups: Vec<DeviceGroup> = parts
                .iter()
                .map(|part| parts_of(of, part, (&kind, memory, count)))
                .collect::<Result<_, _>>()?;
            let held =
                |group: &DeviceGroup| group.class.memory.unwrap_or(0).saturating_mul(group.parts.into());
            let all = groups.iter().map(held).fold(0, u64::saturating_add);
            if memory.is_some_and(|memory| all > memory) {
                return Err(problem("its parts together have more memory than the GPU"));
            }
            Ok(groups)
        }
    }
}

/// Returns the parts of one kind on all GPUs of a group.
fn parts_of(
    of: &str,
    written: &Spanned<PartFile>,
    (whole, has, count): (&str, Option<u64>, u32),
) -> Result<DeviceGroup, Problem> {
    let part = written.get_ref();
    let (name, memory, each) = described(of, &part.kind, part.memory.as_ref(), part.count.as_ref())?;
    let problem =
        |text: String| Problem::new(written.span(), format!("{of}: gpu {whole:?}: part {name:?}: {text}"));
    if name.eq_ignore_ascii_case(whole) {
        return Err(problem("has the type of the whole GPU; give it a type of its own".into()));
    }
    if memory.zip(has).is_some_and(|(memory, has)| memory.saturating_mul(each.into()) > has) {
        return Err(problem(format!("{each} of them have more memory than the GPU")));
    }
    match count.checked_mul(each).filter(|all| *all <= DeviceGroup::MOST) {
        Some(all) => {
            let class = DeviceClass { name, memory, part_of: Some(whole.to_owned()), shares: false };
            Ok(DeviceGroup { class, count: all, parts: each })
        }
        None => {
            Err(problem(format!("more than {} parts; split the GPUs into several tables", DeviceGroup::MOST)))
        }
    }
}

/// Returns the type, the memory in kB and the number of GPUs or parts.
fn described(
    of: &str,
    kind: &Spanned<String>,
    memory: Option<&Spanned<Value>>,
    count: Option<&Spanned<i64>>,
) -> Result<(String, Option<u64>, u32), Problem> {
    let name = kind.get_ref();
    let permitted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !name.bytes().all(permitted) || !name.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        let problem =
            format!("{of}: gpu type {name:?}: must be letters, digits, '.', '_' and '-', with a letter");
        return Err(Problem::new(kind.span(), problem));
    }
    let in_memory = |memory: &Spanned<Value>| {
        let problem = |problem| Problem::new(memory.span(), format!("{of}: gpu {name:?}: memory: {problem}"));
        kilobytes(memory.get_ref()).map_err(problem)
    };
    let memory = memory.map(in_memory).transpose()?;
    let most = DeviceGroup::MOST;
    let number = |count: &Spanned<i64>| {
        let number = u32::try_from(*count.get_ref()).ok().filter(|count| (1..=most).contains(count));
        let problem = || format!("{of}: gpu {name:?}: count = {}: must be 1 to {most}", count.get_ref());
        number.ok_or_else(|| Problem::new(count.span(), problem()))
    };
    Ok((name.clone(), memory, count.map_or(Ok(1), number)?))
}
