//! Devices in the plan: each cell has a timeline, and a job gets cells that stay free for it.

use miserly_core::devices::CellId;
use miserly_core::{Demand, HostId, Ledger, Placement, Procs, Span, Time};

use super::HostPlan;

/// A reservation of a job itself, which is in the plan. An earlier start may use its place.
pub(super) type Own<'a> = Option<(Time, &'a Placement)>;

/// The fit of a job on a host: by devices, free processors and free memory. Smaller is better.
pub(super) type HostFit = ((i64, u64), (Procs, u64, HostId));

/// A start of a job with its fit and its place.
pub(super) type FoundStart = (Time, HostFit, Placement);

impl HostPlan {
    /// Returns whether the machine has devices.
    pub(super) fn has_devices(&self) -> bool {
        self.machine.devices().is_some()
    }

    /// Returns the place of a job on this host and its fit, if the host has room from `at` on. The caller has examined all
    /// but the devices.
    pub(super) fn with_devices_on(
        &self,
        host: HostId,
        at: Time,
        span: Span,
        demand: &Demand,
        own: Own<'_>,
    ) -> Option<(HostFit, Placement)> {
        let placement = Placement::on(host, self.need(host, &demand.amount())?);
        if !self.has_devices() {
            return Some((((0, 0), self.fit_on(host, at)), placement));
        }
        let room = self.free_at(host, at);
        let free = |cell| self.lines.free_in_cell(cell, at);
        let throughout = |cell| self.free_beside_own(cell, at, span, own);
        let ((growth, idle, cpus, memory, host), devices) =
            self.machine.choose_devices(host, demand, &room, free, throughout)?;
        Some((((growth, idle), (cpus, memory, host)), placement.with_devices(devices)))
    }

    /// Returns the amount of a cell that stays free for a span, if the job leaves its own reservation.
    ///
    /// The span begins before that reservation, and ends before it does.
    fn free_beside_own(&self, cell: CellId, at: Time, span: Span, own: Own<'_>) -> u64 {
        let held = own.and_then(|(from, place)| {
            let held = place.devices().iter().find(|held| held.cell == cell)?;
            Some((from, held.amount))
        });
        match held {
            Some((from, amount)) if from < at + span => {
                let before = self.lines.least_in_cell(cell, at, from - at);
                before.min(self.lines.least_in_cell(cell, from, at + span - from).saturating_add(amount))
            }
            _ => self.lines.least_in_cell(cell, at, span),
        }
    }

    /// Returns the earliest start on a host in `from..until`, with its fit and its place. An `own` reservation of the job is
    /// in the plan.
    ///
    /// Devices that are not free at an instant are free at a change of a cell at the earliest, so the search goes on there.
    pub(super) fn earliest_on(
        &self,
        host: HostId,
        (mut from, until): (Time, Time),
        span: Span,
        demand: &Demand,
        own: Own<'_>,
    ) -> Option<FoundStart> {
        let need = self.need(host, &demand.amount())?;
        let limit = own.map_or(Time::MAX, |(at, _)| at);
        loop {
            let start = self.lines.on(host).earliest(from, until, limit, span, &need)?;
            if let Some((fit, place)) = self.with_devices_on(host, start, span, demand, own) {
                return Some((start, fit, place));
            }
            from = self.next_change_of_devices(host, start).filter(|next| *next < until)?;
        }
    }

    /// Returns the first time after `at` at which devices of a host become free, or are taken.
    pub(super) fn next_change_of_devices(&self, host: HostId, at: Time) -> Option<Time> {
        self.lines.next_change(self.machine.devices()?.cells_of(host), at)
    }

    /// Returns whether the devices of a placement stay free for a span.
    pub(super) fn holds_devices(&self, at: Time, span: Span, placement: &Placement) -> bool {
        let mut devices = placement.devices().iter();
        devices.all(|held| held.amount <= self.lines.least_in_cell(held.cell, at, span))
    }

    /// Returns whether the devices of a placement are free at that time, even if all overdue jobs still hold theirs.
    pub fn has_devices_beside_late(&self, at: Time, placement: &Placement, ledger: &Ledger) -> bool {
        placement.devices().iter().all(|held| {
            let late = self.late.iter().filter_map(|job| ledger.entry(*job).placement());
            let same = late.flat_map(Placement::devices).filter(|other| other.cell == held.cell);
            same.map(|other| other.amount).sum::<u64>() <= self.lines.free_in_cell(held.cell, at)
        })
    }

    /// Returns a placement on the idle machine without capacity loss, or `None` if the job never fits.
    pub(super) fn fit_idle(&self, demand: &Demand) -> Option<Placement> {
        match self.machine.devices() {
            None => self.idle.fit(&self.machine, demand),
            Some(table) => {
                let most = |cell| table.cell(cell).most;
                self.machine.fit_with_devices(self.idle.each(), most, demand)
            }
        }
    }
}
