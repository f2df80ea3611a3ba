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
        /// The hosts are those of a table in its paper.
        host_table,
        /// The policy plans with a calendar: capacity that varies over time. Others need constant
        /// capacity.
        calendar,

        /// The policy decides which processors a job has.
        named_processors,
        /// It suspends and resumes running jobs.
        suspension,
        /// Suspended jobs leave memory: swap out, swap in.
        swapping,
        /// It returns running jobs to the queue.
        requeue,
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
        let fits = !(self.one_host && machine.hosts().len() > 1
            || self.one_host_per_job && machine.spread() != Spread::One
            || self.shared_hosts && machine.sharing() != Sharing::Shared);
        (!fits).then(|| self.hosts())
    }

    /// Returns the hosts that are needed, in words.
    pub const fn hosts(&self) -> &'static str {
        match self {
            Needs { one_host: true, .. } => "one host that jobs share",
            Needs { one_host_per_job: true, shared_hosts: true, .. } => {
                "hosts that jobs share, each job on one of them (span one)"
            }
            Needs { one_host_per_job: true, .. } => "hosts with each job on one of them (span one)",
            _ => "hosts of any kind",
        }
    }
}
