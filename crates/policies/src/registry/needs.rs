//! The needs of a policy: independent facts, so that no other component depends on its name.

use miserly_core::{Machine, Sharing, Spread};

/// The facts of a policy that its surroundings have to know.
///
/// The first group is about machines, the second about the launcher of jobs, the third about users.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The machine has one host.
    pub one_host: bool,
    /// Each job runs on one host.
    pub one_host_per_job: bool,
    /// Jobs share hosts.
    pub shared_hosts: bool,
    /// The hosts are those of a table in its paper.
    pub host_table: bool,
    /// The policy plans with a calendar: capacity that varies over time. Others need constant
    /// capacity.
    pub calendar: bool,

    /// The policy decides which processors a job has.
    pub named_processors: bool,
    /// It suspends and resumes running jobs.
    pub suspension: bool,
    /// Suspended jobs leave memory: swap out, swap in.
    pub swapping: bool,
    /// It returns running jobs to the queue.
    pub requeue: bool,
    /// The jobs that it returns to the queue keep the work that is done.
    pub checkpoints: bool,
    /// It resizes running jobs.
    pub resizing: bool,
    /// It slices the time of processors.
    pub time_slices: bool,
    /// It plans running jobs to end before their limits, and corrects that.
    pub predictions: bool,
    /// It plans jobs to run beyond their limits.
    pub beyond_limits: bool,
    /// It uses the actual runtimes of jobs, which only a simulation knows.
    pub known_runtimes: bool,

    /// It honours the constraints `begin` and `deadline` of a request.
    pub begin_and_deadline: bool,
    /// It may refuse a job that fits on the machine.
    pub refusals: bool,
    /// Jobs run opportunistically before their promised starts, unless a user disables that.
    pub opportunistic: bool,
}

impl Needs {
    /// Any machine of constant capacity, and a launcher that starts and ends jobs.
    pub const NONE: Needs = Needs {
        one_host: false,
        one_host_per_job: false,
        shared_hosts: false,
        host_table: false,
        calendar: false,
        named_processors: false,
        suspension: false,
        swapping: false,
        requeue: false,
        checkpoints: false,
        resizing: false,
        time_slices: false,
        predictions: false,
        beyond_limits: false,
        known_runtimes: false,
        begin_and_deadline: false,
        refusals: false,
        opportunistic: false,
    };

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

    /// Returns every fact with its name, in order.
    pub const fn facts(&self) -> [(&'static str, bool); 18] {
        [
            ("one_host", self.one_host),
            ("one_host_per_job", self.one_host_per_job),
            ("shared_hosts", self.shared_hosts),
            ("host_table", self.host_table),
            ("calendar", self.calendar),
            ("named_processors", self.named_processors),
            ("suspension", self.suspension),
            ("swapping", self.swapping),
            ("requeue", self.requeue),
            ("checkpoints", self.checkpoints),
            ("resizing", self.resizing),
            ("time_slices", self.time_slices),
            ("predictions", self.predictions),
            ("beyond_limits", self.beyond_limits),
            ("known_runtimes", self.known_runtimes),
            ("begin_and_deadline", self.begin_and_deadline),
            ("refusals", self.refusals),
            ("opportunistic", self.opportunistic),
        ]
    }
}
