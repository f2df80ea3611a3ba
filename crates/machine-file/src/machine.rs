//! The machine of a run: a built-in name, a number of processors, or a file.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use miserly_core::devices::{DeviceTable, FitRule};
use miserly_core::{JobClasses, Kind, Machine, Procs, Resources, Sharing, Spread};
use miserly_policies::shared::Profile;
use toml::Spanned;

use crate::builtin::{BUILT_IN, built_in};
use crate::classes::job_classes;
use crate::file::{MachineFile, PoolsFile};
use crate::hosts::{Hosts, checked, number_in_bounds, totals_in_bounds};
use crate::pools::{Pools, Queue};
use crate::problem::{Problem, parse};
use crate::words::value_or_default;

/// The description of a machine: its hosts by kind, and the placement of jobs on them.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSpec {
    /// The word that selects it; of a file, its name without folders.
    pub name: String,
    /// Over how many hosts a job may lie.
    pub spread: Spread,
    /// Whether a job has its hosts to itself.
    pub sharing: Sharing,
    /// Its hosts, in the order of their numbers.
    pub hosts: Vec<Hosts>,
    /// Its pools, if it has any.
    pub pools: Option<Pools>,
    /// The job classes of policy `lsf`, if it has any.
    pub classes: Option<Arc<JobClasses>>,
    /// The choice of devices for a job.
    pub gpu_fit: FitRule,
    /// Its devices, if it has any.
    pub devices: Option<Arc<DeviceTable>>,
}

/// The reason for which there is no such machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A number that no machine can have.
    #[error("machine {0}: must have 1 to {most} processors", most = Profile::MOST)]
    Procs(String),
    /// Neither built in, nor a number, nor a file that can be read.
    #[error(
        "no machine {word:?}: not built in ({known}), not a number of processors, and not a readable file ({error})",
        known = BUILT_IN.join(", ")
    )]
    Unknown {
        /// The word.
        word: String,
        /// The error of reading the file.
        error: io::Error,
    },
    /// The file has a mistake.
    #[error("{file}:{line}: {problem}")]
    File {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// The mistake, and its remedy.
        problem: String,
    },
}

/// The reason for which hosts cannot be added or removed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostsError {
    /// There is no kind of hosts with that name.
    #[error("no hosts {kind:?}; the hosts are {}", kinds.join(", "))]
    NoKind {
        /// The name.
        kind: String,
        /// The names of the kinds.
        kinds: Vec<String>,
    },
    /// The machine has several kinds of hosts.
    #[error("the machine has several kinds of hosts; name one of {}", kinds.join(", "))]
    Several {
        /// The names of the kinds.
        kinds: Vec<String>,
    },
    /// There is no host with that name.
    #[error("no host {host:?}; the first one is {first:?}")]
    NoHost {
        /// The name.
        host: String,
        /// The first host.
        first: String,
    },
    /// No host is left.
    #[error("no host is left; keep at least one")]
    NoneLeft,
    /// There are more hosts, processors or memory than any machine has.
    #[error("{0}")]
    TooMany(String),
    /// The machine has pools.
    #[error("the machine has pools, which are of one host; change its file instead")]
    Pools,
}

impl MachineSpec {
    /// Returns the machine of that word: a built-in name, a number of processors, or else a file.
    /// `read` returns the text of the file.
    ///
    /// # Errors
    /// If there is no such machine, or its file has a mistake.
    pub fn named(
        word: &str,
        read: impl FnOnce(&str) -> io::Result<String>,
    ) -> Result<MachineSpec, MachineError> {
        if let Some(text) = built_in(word) {
            return MachineSpec::parse(word, text);
        }
        if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
            let procs = word.parse().ok().filter(|procs| (1..=Profile::MOST).contains(procs));
            return procs
                .map(u64::from)
                .map(Procs::new)
                .map(MachineSpec::plain)
                .ok_or_else(|| MachineError::Procs(word.into()));
        }
        match read(word) {
            Ok(text) => MachineSpec::parse(word, &text),
            Err(error) => Err(MachineError::Unknown { word: word.into(), error }),
        }
    }

    /// Returns one host of `procs` processors, which jobs share, and nothing else accounted.
    pub fn plain(procs: Procs) -> MachineSpec {
        let host =
            Hosts { name: "machine".into(), count: None, each: Resources::cpus(procs), devices: vec![] };
        MachineSpec::with_hosts(procs.to_string(), vec![host])
    }

    fn with_hosts(name: String, hosts: Vec<Hosts>) -> MachineSpec {
        let (spread, sharing) = (Spread::default(), Sharing::default());
        let gpu_fit = FitRule::default();
        MachineSpec { name, spread, sharing, hosts, pools: None, classes: None, gpu_fit, devices: None }
    }

    /// Returns the same hosts with another placement of jobs, where one is given.
    #[must_use]
    pub fn with(self, spread: Option<Spread>, sharing: Option<Sharing>) -> MachineSpec {
        let (spread, sharing) = (spread.unwrap_or(self.spread), sharing.unwrap_or(self.sharing));
        MachineSpec { spread, sharing, ..self }
    }

    /// Returns the machine with `number` more hosts like those of the kind `kind`, or of its only kind.
    ///
    /// # Errors
    /// If there is no such kind, if there are several and none is named, if no machine is that large, or if it has pools.
    pub fn adding(mut self, number: u32, kind: Option<&str>) -> Result<MachineSpec, HostsError> {
        self.refuse_pools()?;
        let kinds = || self.hosts.iter().map(|hosts| hosts.name.clone()).collect();
        let like = match (kind, self.hosts.as_slice()) {
            (Some(kind), hosts) => hosts.iter().find(|hosts| hosts.name == kind),
            (None, [only]) => Some(only),
            (None, _) => return Err(HostsError::Several { kinds: kinds() }),
        };
        let Some(like) = like else {
            return Err(HostsError::NoKind { kind: kind.unwrap_or_default().into(), kinds: kinds() });
        };
        let added = Hosts {
            name: format!("added-{}-", like.name),
            count: Some(number),
            each: like.each,
            devices: like.devices.clone(),
        };
        if let Some(classes) = &mut self.classes {
            let orders = &mut Arc::make_mut(classes).hosts;
            let order = like.names().next().and_then(|name| orders.get(&name).cloned());
            orders.extend(
                order.into_iter().flat_map(|order| added.names().map(move |name| (name, order.clone()))),
            );
        }
        self.hosts.push(added);
        number_in_bounds(&self.hosts)
            .and_then(|()| totals_in_bounds(&self.hosts))
            .map_err(HostsError::TooMany)?;
        self.name = format!("{} and {number} hosts", self.name);
        self.with_device_table().map_err(HostsError::TooMany)
    }

    /// Returns the machine without the hosts of these names.
    ///
    /// # Errors
    /// If there is no such host, if none is left, or if the machine has pools.
    pub fn losing(mut self, names: &[String]) -> Result<MachineSpec, HostsError> {
        self.refuse_pools()?;
        let mut hosts: Vec<Hosts> = self.hosts.iter().flat_map(Hosts::singles).collect();
        for name in names {
            let at = hosts.iter().position(|host| host.name == *name);
            let first = hosts.first().map_or_else(String::new, |host| host.name.clone());
            drop(hosts.remove(at.ok_or_else(|| HostsError::NoHost { host: name.clone(), first })?));
        }
        if hosts.is_empty() {
            return Err(HostsError::NoneLeft);
        }
        self.hosts = hosts;
        self.name = format!("{} without {}", self.name, names.join(", "));
        self.with_device_table().map_err(HostsError::TooMany)
    }

    /// Returns the machine with the table of its hosts' devices.
    fn with_device_table(self) -> Result<MachineSpec, String> {
        let each = |hosts: &Hosts| hosts.names().map(|_| hosts.devices.clone()).collect::<Vec<_>>();
        let devices: Vec<_> = self.hosts.iter().flat_map(each).collect();
        if devices.iter().all(Vec::is_empty) {
            return Ok(MachineSpec { devices: None, ..self });
        }
        let table = DeviceTable::new(&devices).map_err(|error| error.to_string())?;
        Ok(MachineSpec { devices: Some(Arc::new(table)), ..self })
    }

    fn refuse_pools(&self) -> Result<(), HostsError> {
        if self.pools.is_some() { Err(HostsError::Pools) } else { Ok(()) }
    }

    /// Returns the processors of all hosts together.
    pub fn procs(&self) -> Procs {
        let procs = self.hosts.iter().map(|hosts| hosts.number() * hosts.each.cpus_count().get()).sum();
        Procs::new(procs)
    }

    /// Returns the machine of a simulation.
    pub fn machine(&self) -> Machine {
        let hosts = self.hosts.iter().flat_map(Hosts::each).collect();
        Machine::new(hosts)
            .with_spread(self.spread)
            .with_sharing(self.sharing)
            .with_classes(self.classes.clone())
            .with_devices(self.devices.clone())
    }

    /// Returns the machine that `text` describes, the content of the file `path`.
    ///
    /// # Errors
    /// The first mistake, and its line.
    pub fn parse(path: &str, text: &str) -> Result<MachineSpec, MachineError> {
        let spec = parse::<MachineFile>(text).and_then(|file| MachineSpec::checked(path, file));
        spec.map_err(|problem| {
            let line = problem.line(text);
            MachineError::File { file: path.into(), line, problem: problem.text }
        })
    }

    fn checked(path: &str, file: MachineFile) -> Result<MachineSpec, Problem> {
        let spec = MachineSpec {
            spread: value_or_default(file.span.as_ref(), "span", &Spread::ALL)?,
            sharing: value_or_default(file.sharing.as_ref(), "sharing", &Sharing::ALL)?,
            gpu_fit: value_or_default(file.gpu_fit.as_ref(), "gpu-fit", &FitRule::ALL)?,
            ..MachineSpec::with_hosts(file_name(path).into(), checked(&file)?)
        };
        let gpus =
            file.hosts.iter().flat_map(|host| &host.get_ref().devices).last().map_or(0..0, Spanned::span);
        let spec = spec.with_device_table().map_err(|problem| Problem::new(gpus.clone(), problem))?;
        if let (None, Some(fit)) = (&spec.devices, &file.gpu_fit) {
            return Err(Problem::new(
                fit.span(),
                "gpu-fit is for GPUs with types, and there is no [[host.gpu]]",
            ));
        }
        if spec.devices.is_some() && spec.spread == Spread::Any {
            let problem = "GPUs with types need span = \"one\"; write gpus = N for jobs over several hosts";
            return Err(Problem::new(gpus, problem));
        }
        if let (Some(_), Some(pool)) = (&spec.devices, &file.pool) {
            let problem = "a [pool] is of processors and memory; remove it, or the [[host.gpu]]";
            return Err(Problem::new(pool.span(), problem));
        }
        let pools = PoolsFile { utc_offset: file.utc_offset, pool: file.pool, queues: file.queues };
        let pools = spec.checked_pools(&pools)?;
        let classes = file.classes.map(|classes| {
            let named = |hosts: &Hosts| (hosts.name.clone(), hosts.names().collect());
            let queue = |queue: &Queue| (queue.name.clone(), vec![queue.name.clone()]);
            let mut hosts: BTreeMap<String, Vec<String>> =
                spec.hosts.iter().flat_map(Hosts::singles).map(|host| named(&host)).collect();
            hosts.extend(spec.hosts.iter().map(named));
            hosts.extend(pools.iter().flat_map(|pools| pools.queues.iter().map(queue)));
            job_classes(&spec.name, &classes, &hosts).map(Arc::new)
        });
        Ok(MachineSpec { pools, classes: classes.transpose()?, ..spec })
    }

    /// Returns the pools of the machine, if its file has any.
    ///
    /// # Errors
    /// As [`Pools::new`]; also if the machine has several hosts, or a queue has a field of the daemon.
    fn checked_pools(&self, file: &PoolsFile) -> Result<Option<Pools>, Problem> {
        let at = file.pool.as_ref().map(Spanned::span).or_else(|| file.queues.first().map(Spanned::span));
        let Some(at) = at else {
            return file.utc_offset.as_ref().map_or(Ok(None), |offset| {
                Err(Problem::new(offset.span(), "utc-offset is for calendars, and there is no [pool]"))
            });
        };
        if let Some((name, at)) = file.queues.iter().find_map(|queue| queue.get_ref().field_of_daemon()) {
            return Err(Problem::new(at, format!("{name} is for the daemon only; remove it")));
        }
        let has = self.capacity_of_one_host().map_err(|problem| Problem::new(at, problem))?;
        Pools::new(file, &has).map(Some)
    }

    /// Returns the processors and the memory of a machine that can have pools.
    fn capacity_of_one_host(&self) -> Result<Resources, String> {
        let machine = self.machine();
        match machine.hosts() {
            [host] if self.spread == Spread::One && self.sharing == Sharing::Shared => {
                Ok(host.capacity.with(Kind::Gpus, 0))
            }
            _ => Err(
                "pools are of one host that jobs share: one [[host]] without count, span one, sharing shared"
                    .into(),
            ),
        }
    }
}

/// Returns the name of a file without its folders.
fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

impl fmt::Display for MachineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
