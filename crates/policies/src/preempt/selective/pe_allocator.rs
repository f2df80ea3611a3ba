//! The allocation of processors by number: free processors, claims, and starts.

use miserly_core::{
    Context, Entry, Holds, HostId, JobId, Ledger, PeSet, Placement, Procs, Resources, Span, StartReason,
    State, Time, Violation,
};

use super::wanted::Wanted;
use super::{Moving, PeChoice, pe_choice};

/// The only host of a machine that these policies run on.
pub(super) const HOST: HostId = HostId(0);

/// Claims and transfers on processors, beyond the data of the ledger.
///
/// If jobs are swapped out for another job, that job has a claim on the processors during the
/// transfer. No other job may use them. The ledger stores the claim as the planned placement of the
/// job.
#[derive(Debug)]
pub(super) struct PeAllocator {
    moving: Moving,
    /// The jobs with a claim.
    claimants: Vec<JobId>,
    /// The jobs that are being swapped out, and until when.
    swapping_out: Vec<(Time, JobId)>,
    /// The jobs that are being swapped in, and until when.
    swapping_in: Vec<(Time, JobId)>,
    /// The processors of suspended jobs, where the choice of processors depends on them.
    wanted: Wanted,
}

impl PeAllocator {
    pub(super) fn new(moving: Moving) -> PeAllocator {
        let wanted = Wanted::default();
        PeAllocator { moving, claimants: vec![], swapping_out: vec![], swapping_in: vec![], wanted }
    }

    pub(super) fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        let claims = |job: &JobId| claim(ledger.entry(*job)).is_some_and(|pes| are_there(ledger, pes));
        let leaves = |job: JobId| match ledger.entry(job).state {
            State::Suspended { holds: Holds::All { until }, .. } => Some((until, job)),
            _ => None,
        };
        self.swapping_out = ledger.suspended().filter_map(leaves).collect();
        let read_until = |job| (ledger.entry(job).progress.at, job);
        self.swapping_in = ledger.running().map(read_until).filter(|(until, _)| *until > now).collect();
        // Claims exist only during a swap-out, and after it until the next pass.
        self.claimants = ledger.waiting().chain(ledger.suspended()).filter(claims).collect();
        self.wanted.clear();
        ledger.suspended().for_each(|job| self.set_returning(ledger, job));
    }

    /// Removes a job that left the system.
    pub(super) fn forget(&mut self, job: JobId) {
        self.claimants.retain(|claimant| *claimant != job);
        self.swapping_out.retain(|(_, leaving)| *leaving != job);
        self.swapping_in.retain(|(_, coming)| *coming != job);
        self.wanted.remove(job);
    }

    /// Records that a job is suspended.
    fn set_returning(&mut self, ledger: &Ledger, job: JobId) {
        if let Some(own) = own(ledger.entry(job)).filter(|_| self.spares()) {
            self.wanted.insert(job, own);
        }
    }

    /// Returns whether the choice of processors depends on suspended jobs.
    fn spares(&self) -> bool {
        !self.moving.migrates && self.moving.place == PeChoice::Spare
    }

    /// Returns the jobs with a claim.
    pub(super) fn claimants(&self) -> impl Iterator<Item = JobId> {
        self.claimants.iter().copied()
    }

    /// Returns the jobs that are being swapped out.
    pub(super) fn swapping_out(&self) -> impl Iterator<Item = JobId> {
        self.swapping_out.iter().map(|(_, job)| *job)
    }

    pub(super) fn claims(&self, job: JobId) -> bool {
        self.claimants.contains(&job)
    }

    /// Returns whether an idle job neither has a claim nor is being swapped out.
    pub(super) fn is_schedulable(&self, ledger: &Ledger, job: JobId) -> bool {
        !self.claims(job) && !is_swapping_out(ledger.entry(job))
    }

    /// Returns the free processors without a claim.
    pub(super) fn available(&self, ledger: &Ledger) -> PeSet {
        self.unclaimed(ledger, ledger.free_pes(HOST).cloned().unwrap_or_default())
    }

    /// Returns the free processors without a claim after these jobs have left.
    pub(super) fn available_without(&self, ledger: &Ledger, leaving: &[JobId]) -> PeSet {
        self.unclaimed(ledger, ledger.free_pes_without(HOST, leaving))
    }

    fn unclaimed(&self, ledger: &Ledger, mut available: PeSet) -> PeSet {
        for pes in self.claimants.iter().filter_map(|job| claim(ledger.entry(*job))) {
            available.remove_all(pes);
        }
        available
    }

    /// Returns the processors on which no job can be suspended: those with a claim, or of jobs
    /// being swapped.
    pub(super) fn unpreemptable(&self, ledger: &Ledger) -> PeSet {
        let moving =
            self.swapping_out.iter().chain(&self.swapping_in).map(|(_, job)| pes(ledger.entry(*job)));
        let claims = self.claimants.iter().map(|job| claim(ledger.entry(*job)));
        let mut settled = PeSet::empty();
        moving.chain(claims).flatten().for_each(|pes| settled.insert_all(pes));
        settled
    }

    /// Returns the free resources other than processors that no claim needs.
    ///
    /// A claim needs the claimant's missing resources, less those that its victims still hold while
    /// they are swapped out. So the claimant has enough when they are gone.
    pub(super) fn free_rest(&self, ledger: &Ledger) -> Resources {
        self.free_rest_beside(ledger, self.claimants())
    }

    /// Returns the free resources other than processors that none of these claims needs.
    fn free_rest_beside(&self, ledger: &Ledger, claimants: impl Iterator<Item = JobId>) -> Resources {
        let lacks = |job: JobId| {
            let by = ledger.entry(job).admitted;
            let theirs = self
                .swapping_out
                .iter()
                .map(|(_, job)| ledger.entry(*job))
                .filter(|leaves| is_for(leaves, by));
            let coming =
                theirs.fold(Resources::NONE, |sum, entry| sum.plus(&self.moving.transfer.frees(entry)));
            rest(ledger, job).less(&coming)
        };
        let claimed = claimants.fold(Resources::NONE, |sum, job| sum.plus(&lacks(job)));
        ledger.free().without_cpus().less(&claimed)
    }

    /// Returns whether the resources other than processors that a job needs are free for it.
    pub(super) fn has_rest(&self, ledger: &Ledger, job: JobId) -> bool {
        rest(ledger, job).fits_in(&self.free_rest(ledger))
    }

    /// Frees the resources of jobs that are swapped out by now.
    pub(super) fn finish_swap_outs(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        self.swapping_in.retain(|(until, _)| *until > now);
        let gone = self.swapping_out.extract_if(.., |(until, _)| *until <= now).map(|(_, job)| job);
        in_order(context.ledger(), gone.collect())
            .into_iter()
            .try_for_each(|job| context.finish_swap_out(job))
    }

    /// Starts or resumes the jobs whose claims are free. Returns these jobs.
    ///
    /// A job leaves what the other claims need. The last transfer completes all claims, so a claim
    /// that is not complete then has lost resources of the machine. Claims go in order then.
    pub(super) fn serve_claims(&mut self, context: &mut Context<'_>) -> Result<Vec<JobId>, Violation> {
        let mut served = vec![];
        for job in in_order(context.ledger(), self.claimants.clone()) {
            let ledger = context.ledger();
            let free = ledger.free_pes(HOST);
            let pes = claim(ledger.entry(job)).filter(|pes| free.is_some_and(|free| free.contains_all(pes)));
            if let Some(pes) =
                pes.cloned().filter(|_| rest(ledger, job).fits_in(&self.free_rest_of(ledger, job)))
            {
                self.claimants.retain(|claimant| *claimant != job);
                self.start_or_resume(context, job, pes, StartReason::Reserved)?;
                served.push(job);
            }
        }
        Ok(served)
    }

    /// Returns the free resources other than processors that a job with a claim can take.
    fn free_rest_of(&self, ledger: &Ledger, job: JobId) -> Resources {
        if self.swapping_out.is_empty() {
            return ledger.free().without_cpus();
        }
        self.free_rest_beside(ledger, self.claimants().filter(|claimant| *claimant != job))
    }

    /// Returns processors among `available` on which a job could run now, or `None`.
    ///
    /// `choose` returns those of a job without fixed processors. It is called only if there are
    /// enough.
    pub(super) fn place(
        &self,
        ledger: &Ledger,
        job: JobId,
        available: &PeSet,
        choose: impl FnOnce() -> Option<PeSet>,
    ) -> Option<PeSet> {
        let entry = ledger.entry(job);
        if !self.has_rest(ledger, job) {
            return None;
        }
        match own(entry).filter(|_| self.must_return(ledger, entry)) {
            Some(own) => available.contains_all(own).then(|| own.clone()),
            None if available.count() < entry.request.procs() => None,
            None => choose(),
        }
    }

    /// Returns `procs` of these processors for a job without fixed processors.
    ///
    /// Considers the processors to which suspended jobs have to return, and jobs that are about to
    /// be suspended, the `leaving` ones. `by_urgency` has all of these, the most urgent first.
    pub(super) fn choose(
        &self,
        ledger: &Ledger,
        procs: Procs,
        of: &PeSet,
        leaving: &[JobId],
        by_urgency: impl Iterator<Item = JobId>,
    ) -> Option<PeSet> {
        if !self.spares() {
            return of.clone().take_lowest(procs);
        }
        let pes_of = |job| pes(ledger.entry(job));
        let mut others = of.clone();
        leaving.iter().filter_map(|job| pes_of(*job)).for_each(|pes| others.remove_all(pes));
        self.wanted
            .others(others, procs)
            .or_else(|| pe_choice::spare(of, procs, by_urgency.filter_map(pes_of)))
    }

    /// Returns whether a job must return to its own processors, which the machine must still have.
    pub(super) fn must_return(&self, ledger: &Ledger, entry: &Entry) -> bool {
        !self.moving.migrates && own(entry).is_some_and(|own| are_there(ledger, own))
    }

    /// Starts or resumes a job on these processors, which are free.
    pub(super) fn start_or_resume(
        &mut self,
        context: &mut Context<'_>,
        job: JobId,
        pes: PeSet,
        reason: StartReason,
    ) -> Result<(), Violation> {
        let entry = context.ledger().entry(job);
        let State::Suspended { ref placement, .. } = entry.state else {
            let demand = context.ledger().machine().amount(&entry.request);
            return context.start(job, Placement::on_pes(HOST, demand, pes), reason);
        };
        let read = self.moving.transfer.swap_in_time(entry);
        if read > Span::ZERO {
            self.swapping_in.push((context.now() + read, job));
        }
        self.wanted.remove(job);
        let moves = placement.pes() != Some(&pes);
        let on = moves.then(|| Placement::on_pes(HOST, placement.total(), pes));
        context.resume_on(job, on, read)
    }

    /// Suspends these jobs so that another one can have these processors, at once or after their
    /// swap-out.
    pub(super) fn start_over_victims(
        &mut self,
        context: &mut Context<'_>,
        job: JobId,
        victims: &[JobId],
        pes: PeSet,
        reason: StartReason,
    ) -> Result<(), Violation> {
        let (now, by) = (context.now(), context.ledger().entry(job).admitted);
        let mut latest = now;
        for victim in victims {
            let Some(write) = self.moving.transfer.swap_out_time(context.ledger().entry(*victim)) else {
                context.suspend(*victim, Time::MAX, by)?;
                self.set_returning(context.ledger(), *victim);
                continue;
            };
            let until = now + write;
            context.swap_out(*victim, until, by)?;
            self.set_returning(context.ledger(), *victim);
            self.swapping_out.push((until, *victim));
            latest = latest.max(until);
        }
        // Transfers that take no time are finished.
        self.finish_swap_outs(context)?;
        if latest == now {
            return self.start_or_resume(context, job, pes, reason);
        }
        let demand = context.ledger().machine().amount(context.ledger().request(job));
        context.plan_on(job, latest, Placement::on_pes(HOST, demand, pes))?;
        self.claimants.push(job);
        Ok(())
    }

    /// Returns the next end of a swap-out.
    pub(super) fn next_swap_out(&self) -> Option<Time> {
        self.swapping_out.iter().map(|(until, _)| *until).min()
    }

    /// Returns the next end of a swap-in, after which the job can be suspended again.
    pub(super) fn next_swap_in(&self) -> Option<Time> {
        self.swapping_in.iter().map(|(until, _)| *until).min()
    }
}

/// Returns the jobs in the order of their admission.
fn in_order(ledger: &Ledger, mut jobs: Vec<JobId>) -> Vec<JobId> {
    jobs.sort_unstable_by_key(|job| ledger.entry(*job).admitted);
    jobs
}

/// Returns whether the machine has all of these processors.
fn are_there(ledger: &Ledger, pes: &PeSet) -> bool {
    let procs = ledger.machine().capacity().cpus_count();
    pes.ranges().last().is_none_or(|(_, highest)| Procs::new(u64::from(*highest)) < procs)
}

/// Returns the processors that a job had when it was suspended.
pub(super) fn own(entry: &Entry) -> Option<&PeSet> {
    match &entry.state {
        State::Suspended { placement, .. } => placement.pes(),
        _ => None,
    }
}

/// Returns whether a job was suspended on some of these processors.
pub(super) fn returns_to(ledger: &Ledger, job: JobId, pes: &PeSet) -> bool {
    own(ledger.entry(job)).is_some_and(|own| own.intersects(pes))
}

/// Returns the processors that a job runs on, or leaves.
pub(super) fn pes(entry: &Entry) -> Option<&PeSet> {
    entry.placement().and_then(Placement::pes)
}

/// Returns whether a job runs, keeps its processors for now, and is not being swapped in.
pub(super) fn works(entry: &Entry, now: Time) -> bool {
    keeps(entry) && entry.progress.at <= now
}

/// Returns whether a job runs and keeps its processors for now.
pub(super) fn keeps(entry: &Entry) -> bool {
    matches!(entry.state, State::Running { released: false, .. })
}

/// Returns the processors that an idle job has a claim on.
pub(super) fn claim(entry: &Entry) -> Option<&PeSet> {
    entry.planned_on.as_ref().and_then(Placement::pes)
}

/// Returns the resources other than processors that a job needs and does not hold.
pub(super) fn rest(ledger: &Ledger, job: JobId) -> Resources {
    let entry = ledger.entry(job);
    match entry.state {
        State::Suspended { holds: Holds::AllButCpus, .. } => Resources::NONE,
        _ => ledger.machine().amount(&entry.request).without_cpus(),
    }
}

/// Returns whether a job was suspended for the one with that admission number.
fn is_for(entry: &Entry, admitted: u64) -> bool {
    matches!(entry.state, State::Suspended { by, .. } if by == admitted)
}

/// Returns whether a job is suspended and still being swapped out.
fn is_swapping_out(entry: &Entry) -> bool {
    matches!(entry.state, State::Suspended { holds: Holds::All { .. }, .. })
}
