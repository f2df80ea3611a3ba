//! The needs of a policy: independent facts, so that no other component depends on its name.

use miserly_core::{Machine, Sharing, Spread};

macro_rules! needs {
    ($(#[$about:meta])* { $($(#[$doc:meta])* $fact:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Needs {
            $($(#[$doc])* pub $fact: bool,)*
        }

        impl Needs {
            /// Any machine of constant capacity, and a launcher that starts and ends jobs.
            pub const NONE: Needs = Needs { $($fact: false,)* };

            /// Returns every fact with its name, in order.
            pub const fn facts(&self) -> [(&'static str, bool); [$(stringify!($fact)),*].len()] {
                [$((stringify!($fact), self.$fact)),*]
            }
        }
    };
}

needs! {
    /// The facts of a policy that its surroundings have to know.
    ///
    /// The first group is about machines, the second about the launcher of jobs, the third about users.
    {
        /// The machine has one host.
        one_host,
        /// Each job runs on one host.
        one_host_per_job,
        /// Jobs share hosts.
        shared_hosts,
        /// The machine has a table of job classes, with all of its hosts.
        host_table,
        /// The policy plans with a calendar: capacity that varies over time. Others need constant
        /// capacity.
        calendar,
        /// The policy plans with hosts that are closed at times. Others need hosts that are always open.
        closed_hosts,
        /// The policy plans with devices, such as GPUs with a type. Others need a machine without devices.
        devices,

        /// The policy decides which processors a job has.
        named_processors,
        /// It suspends and resumes running jobs.
        suspension,
        /// Suspended jobs leave memory: swap out, swap in.
        swapping,
        /// It returns running jobs to the queue.
        requeue,
        /// It starts jobs for a quantum, after which they may wait again.
        quanta,
        /// It ends running jobs before their limits, for good.
        cancellation,
        /// The jobs that it returns to the queue keep the work that is done.
        checkpoints,
        /// It resizes running jobs.
        resizing,
        /// It slices the time of processors.
        time_slices,
        /// It plans running jobs to end before their limits, and corrects that.
        predictions,
        /// It plans jobs to run beyond their limits.
        beyond_limits,
        /// It uses the actual runtimes of jobs, which only a simulation knows.
        known_runtimes,

        /// It honours the constraints `begin` and `deadline` of a request.
        begin_and_deadline,
        /// It may refuse a job that fits on the machine.
        refusals,
        /// Jobs run opportunistically before their promised starts, unless a user disables that.
        opportunistic,
    }
}

impl Needs {
    /// Returns the machine that is needed, in words, if this one is unsuitable.
    pub fn unmet(&self, machine: &Machine) -> Option<&'static str> {
        if !self.calendar && machine.varies() {
            return Some("machines with constant capacity");
        }
        if !self.closed_hosts && !machine.closed_hosts().is_empty() {
            return Some("hosts that are always open");
        }
        if !self.devices && machine.devices().is_some() {
            return Some("machines without typed GPUs");
        }
        let fits = !(self.one_host && machine.hosts().len() > 1
            || self.one_host_per_job && machine.spread() != Spread::One
            || self.shared_hosts && machine.sharing() != Sharing::Shared);
        (!fits).then(|| self.hosts())
    }

    /// Returns the need that processes on one machine cannot meet, with the reason; `None` if the daemon runs such a policy. One that
    /// [swaps](Needs::swapping) runs in a queue whose jobs are written out by a command.
    pub fn unmet_in_daemon(&self) -> Option<&'static str> {
        let unable = [
            (self.checkpoints, "keep_work=true: a process that is taken off the machine loses its work"),
            (self.cancellation, "it ends jobs before their limits, for good"),
            (self.known_runtimes, "it uses actual runtimes, which only a simulation knows"),
            (self.beyond_limits, "it plans jobs beyond their time limits, at which the daemon ends them"),
        ];
        first(unable)
    }

    /// Returns the need that a driver of Slurm cannot meet; `None` if it runs such a policy.
    pub fn unmet_on_slurm(&self) -> Option<&'static str> {
        let unable = [
            (self.host_table, "a table of job classes, which a cluster does not have"),
            (self.swapping, "to swap out suspended jobs"),
            (self.checkpoints, "to keep the work of jobs that it returns to the queue"),
            (self.cancellation, "to end jobs before their limits, for good"),
            (self.resizing, "to resize jobs"),
            (self.time_slices, "to slice time"),
            (self.named_processors, "to choose processors"),
            (self.known_runtimes, "the runtimes of jobs in advance"),
            (self.beyond_limits, "jobs that run beyond their limits"),
        ];
        first(unable)
    }

    /// Returns the hosts that are needed, in words.
    pub const fn hosts(&self) -> &'static str {
        match self {
            Needs { one_host: true, .. } => "one host that jobs share",
            Needs { host_table: true, .. } => {
                "hosts of a table of job classes, each job on one of them (span one)"
            }
            Needs { one_host_per_job: true, shared_hosts: true, .. } => {
                "hosts that jobs share, each job on one of them (span one)"
            }
            Needs { one_host_per_job: true, .. } => "hosts with each job on one of them (span one)",
            _ => "hosts of any kind",
        }
    }
}

/// Returns the first reason that applies.
fn first<const N: usize>(reasons: [(bool, &'static str); N]) -> Option<&'static str> {
    reasons.into_iter().find_map(|(applies, reason)| applies.then_some(reason))
}
