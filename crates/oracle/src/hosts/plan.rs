//! The expected allocation of hosts over time.

use miserly_core::{Demand, Machine, Resources, Span, Spread, Time};

use super::devices::{devices, idle};
use super::fit::{Part, fit, fullness, held};
use super::world::World;

/// A waiting job, its placement and its reserved start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) job: usize,
    pub(super) at: Time,
    pub(super) parts: Vec<Part>,
}

/// The running jobs and some reservations.
pub(super) struct Plan<'a> {
    machine: &'a Machine,
    held: Vec<Held>,
}

/// Parts of hosts that are allocated in `[from, until)`.
struct Held {
    from: Time,
    until: Time,
    parts: Vec<Part>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(world: &World<'a>, reservations: &[Reservation]) -> Plan<'a> {
        let mut held = Vec::new();
        for running in world.holding() {
            // An overdue job may end at any moment, but it still holds its resources now.
            let until = running.expected.max(world.now + Span::TICK);
            held.push(Held { from: world.now, until, parts: running.parts.clone() });
        }
        for Reservation { job, at, parts } in reservations {
            let until = *at + world.request(*job).planned();
            held.push(Held { from: *at, until, parts: parts.clone() });
        }
        Plan { machine: world.machine, held }
    }

    /// Returns the free resources of the host at that instant.
    pub(super) fn free(&self, host: usize, time: Time) -> Resources {
        let holding = self.held.iter().filter(|held| held.from <= time && time < held.until);
        let here = holding.flat_map(|held| &held.parts).filter(|part| part.host == host);
        let capacity = self.machine.hosts()[host].capacity;
        here.fold(capacity, |free, part| free.minus(&part.amount).expect("nobody has what is not there"))
    }

    /// Returns the minimum of each kind that is free on the host over the span.
    fn least(&self, host: usize, from: Time, span: Span) -> Resources {
        // The free amount decreases only where an allocation begins.
        let begins = self.held.iter().map(|held| held.from).filter(|&at| from < at && at < from + span);
        begins.fold(self.free(host, from), |least, at| least.least(&self.free(host, at)))
    }

    /// Returns the free amount of a cell of devices at that instant.
    pub(super) fn free_in_cell(&self, cell: usize, time: Time) -> u64 {
        let holding = self.held.iter().filter(|held| held.from <= time && time < held.until);
        let here = holding.flat_map(|held| &held.parts).flat_map(|part| &part.devices);
        let taken: u64 = here.filter(|(other, _)| *other == cell).map(|(_, amount)| amount).sum();
        let capacity = self.machine.devices().map_or(0, |table| table.cells()[cell].capacity);
        capacity.checked_sub(taken).expect("nobody has what is not there")
    }

    /// Returns the amount of a cell that is free over the span.
    fn least_in_cell(&self, cell: usize, from: Time, span: Span) -> u64 {
        let begins = self.held.iter().map(|held| held.from).filter(|&at| from < at && at < from + span);
        begins.fold(self.free_in_cell(cell, from), |least, at| least.min(self.free_in_cell(cell, at)))
    }

    /// Returns a placement for a job that starts at that instant and stays for the span.
    ///
    /// One host: the best fit at the start among the hosts that can run it. Several hosts: the fit
    /// into the resources that stay free for the whole span.
    pub(super) fn room(&self, at: Time, span: Span, demand: &Demand) -> Option<Vec<Part>> {
        let hosts = 0..self.machine.hosts().len();
        let least: Vec<Resources> = hosts.clone().map(|host| self.least(host, at, span)).collect();
        if self.machine.spread() == Spread::Any {
            return fit(self.machine, &least, demand);
        }
        let need = demand.amount();
        let parts = hosts.filter_map(|host| {
            let amount = held(self.machine, host, &least[host], &need, false)?;
            let devices = devices(self.machine, host, demand, |cell| self.least_in_cell(cell, at, span))?;
            Some(Part { host, amount, devices })
        });
        let rank = |part: &Part| {
            let idle = idle(self.machine, part.host, |cell| self.free_in_cell(cell, at));
            (idle, fullness(part.host, &self.free(part.host, at)))
        };
        parts.min_by_key(rank).map(|part| vec![part])
    }

    /// Returns the earliest start, not before `from`, and its placement.
    pub(super) fn earliest(&self, from: Time, span: Span, demand: &Demand) -> (Time, Vec<Part>) {
        let mut starts: Vec<Time> = self.held.iter().map(|held| held.until).collect();
        starts.retain(|&until| until > from);
        starts.push(from);
        starts.sort_unstable();
        let place = |at: Time| Some((at, self.room(at, span, demand)?));
        starts.into_iter().find_map(place).expect("after the last end the machine is idle")
    }

    /// Returns whether all of these parts are free for the span.
    pub(super) fn holds(&self, at: Time, span: Span, parts: &[Part]) -> bool {
        parts.iter().all(|part| {
            let mut devices = part.devices.iter();
            part.amount.fits_in(&self.least(part.host, at, span))
                && devices.all(|(cell, amount)| *amount <= self.least_in_cell(*cell, at, span))
        })
    }
}
