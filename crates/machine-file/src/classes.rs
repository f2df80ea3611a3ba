//! The job classes of a machine, checked.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{JobClasses, LengthClass, Procs, SizeClass, SizeTurn, Span};
use miserly_policies::shared::Profile;
use toml::{Spanned, Value};

use crate::file::{ClassesFile, HostClassesFile, LengthFile, SizeFile, TurnFile};
use crate::problem::Problem;
use crate::quantity::{duration, kilobytes};

/// Returns the table `[classes]` of a file, under the name of the file.
///
/// `hosts` has the names of all hosts: each with those that a written name means.
///
/// # Errors
/// The first mistake: a table without sizes, lengths or hosts; a name that is given twice, or of no
/// size or host; a number out of its range.
pub fn job_classes(
    name: &str,
    written: &Spanned<ClassesFile>,
    hosts: &BTreeMap<String, Vec<String>>,
) -> Result<JobClasses, Problem> {
    let ClassesFile { sizes, lengths, hosts: orders } = written.get_ref();
    let empty = [("size", sizes.is_empty()), ("length", lengths.is_empty()), ("host", orders.is_empty())];
    if let Some((missing, _)) = empty.into_iter().find(|(_, empty)| *empty) {
        let problem = format!("classes: there is no [[classes.{missing}]]; write one or more");
        return Err(Problem::new(written.span(), problem));
    }
    unique("size", sizes.iter().map(|size| &size.name))?;
    unique("length", lengths.iter().map(|length| &length.name))?;
    let mut classes = JobClasses {
        name: name.to_owned(),
        sizes: sizes.iter().map(size).collect::<Result<_, _>>()?,
        lengths: lengths.iter().map(length).collect::<Result<_, _>>()?,
        hosts: BTreeMap::new(),
    };
    for HostClassesFile { hosts: names, order } in orders {
        unique("size", order.iter().map(|turn| &turn.get_ref().size))?;
        let order: Vec<SizeTurn> =
            order.iter().map(|written| turn(&classes.sizes, written.get_ref())).collect::<Result<_, _>>()?;
        for name in names {
            let wrong = |problem: &str| {
                let problem = format!("classes: host {:?}: {problem}", name.get_ref());
                Problem::new(name.span(), problem)
            };
            let known = hosts.get(name.get_ref()).ok_or_else(|| {
                let known: Vec<_> = hosts.keys().map(String::as_str).collect();
                wrong(&format!("there is none of that name; there are {}", known.join(", ")))
            })?;
            for host in known {
                if classes.hosts.insert(host.clone(), order.clone()).is_some() {
                    return Err(wrong("it has an order already; remove one"));
                }
            }
        }
    }
    Ok(classes)
}

/// Checks that no name is given twice.
fn unique<'a>(what: &str, names: impl Iterator<Item = &'a Spanned<String>>) -> Result<(), Problem> {
    let mut known = BTreeSet::new();
    for name in names {
        if !known.insert(name.get_ref()) {
            let problem = format!("classes: {what} {:?} is there twice; remove one", name.get_ref());
            return Err(Problem::new(name.span(), problem));
        }
    }
    Ok(())
}

fn size(written: &SizeFile) -> Result<SizeClass, Problem> {
    let what = format!("size {:?}: cpus", written.name.get_ref());
    let memory = written.memory.as_ref().map_or(Ok(u64::MAX), |memory| {
        let wrong = |problem| format!("classes: size {:?}: memory: {problem}", written.name.get_ref());
        kilobytes(memory.get_ref()).map_err(|problem| Problem::new(memory.span(), wrong(problem)))
    })?;
    let procs = Procs::new(number(&what, &written.cpus, Profile::MOST)?.into());
    Ok(SizeClass { name: written.name.get_ref().clone(), procs, memory })
}

fn length(written: &LengthFile) -> Result<LengthClass, Problem> {
    let name = written.name.get_ref();
    let time = |field: &str, value: &Spanned<Value>| -> Result<Span, Problem> {
        duration(value.get_ref()).map_err(|problem| {
            Problem::new(value.span(), format!("classes: length {name:?}: {field}: {problem}"))
        })
    };
    Ok(LengthClass {
        name: name.clone(),
        time: time("time", &written.time)?,
        reserve_wait: written.reserve_wait.as_ref().map(|wait| time("reserve-wait", wait)).transpose()?,
        most: limit(&format!("length {name:?}"), written.limit.as_ref())?,
        first: written.first,
    })
}

fn turn(sizes: &[SizeClass], written: &TurnFile) -> Result<SizeTurn, Problem> {
    let name = written.size.get_ref();
    let size = sizes.iter().position(|size| size.name == *name).ok_or_else(|| {
        let known: Vec<&str> = sizes.iter().map(|size| size.name.as_str()).collect();
        let problem = format!("classes: there is no size {name:?}; there are {}", known.join(", "));
        Problem::new(written.size.span(), problem)
    })?;
    Ok(SizeTurn { size, most: limit(&format!("size {name:?}"), written.limit.as_ref())? })
}

fn limit(of: &str, written: Option<&Spanned<i64>>) -> Result<Option<u32>, Problem> {
    written.map(|written| number(&format!("{of}: limit"), written, u32::MAX)).transpose()
}

/// Returns a number from 1 to `most`.
fn number(what: &str, written: &Spanned<i64>, most: u32) -> Result<u32, Problem> {
    let number = u32::try_from(*written.get_ref()).ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| {
        let problem = format!("classes: {what} = {}: must be 1 to {most}", written.get_ref());
        Problem::new(written.span(), problem)
    })
}
