//! The start of a waiting job at the end of running ones.

use miserly_core::{
    Demand, Expected, Form, JobId, Ledger, Machine, Placement, Resources, Span, Spread, State, Time,
};

use super::preemption::Preempted;
use super::round_up;
use super::select::select_hosts;

/// The first window: ends of jobs within it count as one. It is also the unit of the clock at which windows begin.
const WINDOW: Span = Span::from_ticks(30_000_000);

/// The jobs on the machine, in the order of their ends by time limit and then of their submissions, and the resources beside
/// them.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    free: Vec<Resources>,
    running: Vec<(Time, Placement)>,
}

impl Ends {
    /// Returns the jobs of a ledger. Overdue ones end at the next tick.
    pub(super) fn new(now: Time, ledger: &Ledger) -> Ends {
        let mut ends = Ends { free: ledger.free_hosts().each().to_vec(), running: vec![] };
        for job in ledger.running() {
            // The resources of a released job are free already.
            if let State::Running { expected, placement, released: false, .. } = &ledger.entry(job).state {
                let end = match expected {
                    Expected::At(end) => *end,
                    Expected::Overdue { .. } => now,
                };
                let end = Preempted::due(ledger.entry(job)).map_or(end, |at| end.min(at));
                ends.running.push((end.max(now + Span::TICK), placement.clone()));
            }
        }
        ends.running.sort_by_key(|(end, _)| *end);
        ends
    }

    /// Adds a job that starts.
    pub(super) fn start(&mut self, end: Time, placement: &Placement) {
        for share in placement.shares() {
            let room = &mut self.free[share.host.index()];
            *room = room.less(&share.amount);
        }
        let place = self.running.partition_point(|(other, _)| *other <= end);
        self.running.insert(place, (end, placement.clone()));
    }

    /// Returns the first start of a job on the open hosts that a search in steps finds, and its place.
    ///
    /// The search adds what running jobs on these hosts leave, in the order of their ends, and tries the job after each step.
    /// The bounds of the steps are counted from the first half minute of the clock after the first end. The first bound is 30 s
    /// later, and each other one is twice as far. A bound ends a step when the next end of any job is beyond it, so a
    /// step has one job on these hosts at least. The job starts at the last end of its step. So a start may be later than the
    /// machine allows, as in Slurm.
    pub(super) fn first_start(
        &self,
        now: Time,
        machine: &Machine,
        open: &[bool],
        demand: &Demand,
    ) -> Option<(Time, Placement)> {
        if let Some(placement) = select_hosts(machine, &self.free, open, demand) {
            return Some((now, placement));
        }
        let on_open = |placement: &Placement| placement.shares().iter().any(|share| open[share.host.index()]);
        let first = self.running.iter().find(|(_, placement)| on_open(placement))?.0;
        let begin = round_up(first + Span::TICK, WINDOW);
        let (mut window, mut free, mut last) = (WINDOW, self.free.clone(), None);
        for (nth, (end, placement)) in self.running.iter().enumerate() {
            if !on_open(placement) {
                continue;
            }
            release(&mut free, placement);
            last = Some(*end);
            let next = self.running.get(nth + 1).map(|(end, _)| *end);
            if next.is_some_and(|next| next <= begin + window) {
                continue;
            }
            if let Some(placement) = select_hosts(machine, &free, open, demand) {
                return Some((*end, placement));
            }
            while next.is_some_and(|next| next > begin + window) {
                window = window + window;
            }
        }
        // The rest of the last step ends on no open host.
        let placement = select_hosts(machine, &free, open, demand)?;
        last.map(|end| (end, placement))
    }
}

/// Returns the demand of a job, in one part where a job has one host.
pub(super) fn demand_of(ledger: &Ledger, job: JobId) -> Demand {
    let demand = ledger.machine().demand(ledger.request(job));
    match ledger.machine().spread() {
        Spread::Any => demand,
        Spread::One => Demand::new(demand.amount(), Form::parts(1)),
    }
}

fn release(free: &mut [Resources], placement: &Placement) {
    for share in placement.shares() {
        let room = &mut free[share.host.index()];
        *room = room.plus(&share.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miserly_core::{Host, HostId};

    /// Jobs that each hold one of four hosts of one processor until a second. A job of this many processors starts at a second.
    #[track_caller]
    fn check(ends: [i64; 4], open: [bool; 4], procs: u64, expected: Option<i64>) {
        let at = |seconds| Time::from_secs(seconds).unwrap();
        let one = Resources::cpus(1_u64);
        let host = |name: u32| Host { name: name.to_string(), capacity: one };
        let machine = Machine::new((0..4).map(host).collect()).with_spread(Spread::Any);
        let mut running: Vec<(Time, Placement)> =
            (0..).zip(ends).map(|(host, end)| (at(end), Placement::on(HostId(host), one))).collect();
        running.sort_by_key(|(end, _)| *end);
        let all = Ends { free: vec![Resources::NONE; 4], running };
        let demand = Demand::from(Resources::cpus(procs));
        let start = all.first_start(at(0), &machine, &open, &demand).map(|(start, _)| start);
        assert_eq!(start, expected.map(at), "{ends:?}, {procs}");
    }

    const ALL: [bool; 4] = [true; 4];

    #[test]
    fn ends_within_a_window_are_one() {
        // The windows begin at 60: the first one ends at 90, the second at 120, and the third at 180.
        check([31, 90, 91, 121], ALL, 1, Some(90));
        check([31, 90, 91, 121], ALL, 3, Some(91));
        check([31, 90, 91, 121], ALL, 4, Some(121));
        // An end on the half minute belongs to the next one.
        check([30, 90, 91, 200], ALL, 1, Some(90));
        check([31, 100, 130, 200], ALL, 2, Some(100));
    }

    #[test]
    fn windows_without_ends_are_passed_over() {
        check([31, 500, 530, 600], ALL, 2, Some(530));
    }

    #[test]
    fn only_open_hosts_count() {
        check([31, 90, 91, 121], [false, false, true, true], 1, Some(121));
        check([31, 90, 91, 121], [true, false, false, false], 1, Some(31));
        check([31, 90, 91, 121], [true, false, false, true], 3, None);
        // The end behind the bound is taken, for the one before it is on no open host.
        check([31, 80, 140, 150], [true, false, true, true], 1, Some(140));
    }
}
