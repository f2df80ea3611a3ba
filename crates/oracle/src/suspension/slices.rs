//! Immediate service: a slice at once for each new job, the rest by EASY.

use miserly_core::{Span, Time};

use super::processors::{count, enough, meet, union, without};
use super::world::{State, World};

/// The reservation of the first job of the queue.
struct Reservation {
    at: Time,
    /// The extra processors at that time, if the job has no fixed place.
    extra: u64,
    /// Its place, if that is fixed.
    on: Option<Vec<bool>>,
}

impl World<'_> {
    pub(super) fn pass_with_slices(&mut self, slice: Span) {
        self.pass_queue();
        for job in std::mem::take(&mut self.new) {
            if self.standing[job].state == State::Waiting {
                self.serve(job, slice);
                self.pass_queue();
            }
        }
    }

    /// Runs EASY, in the order of arrival.
    fn pass_queue(&mut self) {
        let mut reserved: Option<Reservation> = None;
        for job in self.idle() {
            let available = self.available();
            let Some(first) = &mut reserved else {
                match self.place(job, &available) {
                    Some(pes) => self.go_on(job, pes),
                    None if self.has_rest(job, &[]) => reserved = Some(self.reserve(job)),
                    None => {}
                }
                continue;
            };
            let in_time = self.now + self.reading(job) + self.left(job) <= first.at;
            if in_time {
                if let Some(pes) = self.place(job, &available) {
                    self.go_on(job, pes);
                }
            } else if let Some(on) = &first.on {
                if let Some(pes) = self.place(job, &without(&available, on)) {
                    self.go_on(job, pes);
                }
            } else if first.extra >= self.procs(job)
                && let Some(pes) = self.place(job, &available)
            {
                first.extra -= self.procs(job);
                self.go_on(job, pes);
            }
        }
    }

    fn reserve(&self, job: usize) -> Reservation {
        let occupied = self.occupied();
        if let Some(own) = self.own(job) {
            let there = occupied.iter().filter(|(_, pes)| meet(pes, &own));
            let at = there.map(|(end, _)| *end).max().unwrap_or(self.now);
            return Reservation { at, extra: 0, on: Some(own) };
        }
        let mut instants: Vec<Time> = occupied.iter().map(|(end, _)| *end).collect();
        instants.push(self.now);
        instants.sort();
        let free_at = |at: Time| {
            let over = occupied.iter().filter(|(end, _)| *end <= at);
            count(&self.available()) + over.map(|(_, pes)| count(pes)).sum::<u64>()
        };
        let enough = instants.iter().find(|at| free_at(**at) >= self.procs(job));
        let at = *enough.or(instants.last()).expect("there is now");
        Reservation { at, extra: free_at(at).saturating_sub(self.procs(job)), on: None }
    }

    /// Returns the allocated processors and their ends. Claims count for their future holders.
    fn occupied(&self) -> Vec<(Time, Vec<bool>)> {
        let mut occupied = vec![];
        let mut claimed = self.nobody();
        for job in 0..self.jobs.len() {
            let Some((start, pes)) = &self.standing[job].claim else { continue };
            occupied.push(((*start).max(self.now) + self.reading(job) + self.left(job), pes.clone()));
            claimed = union(&claimed, pes);
        }
        for job in (0..self.jobs.len()).filter(|&job| self.holds_pes(job)) {
            let standing = &self.standing[job];
            let end = standing.writes_until.unwrap_or(standing.expected);
            occupied.push((end.max(self.now + Span::TICK), without(&standing.pes, &claimed)));
        }
        occupied
    }

    /// Starts a slice for a new job, if enough running jobs have completed theirs.
    fn serve(&mut self, job: usize, slice: Span) {
        let mut candidates = self.those(State::Running);
        candidates.retain(|&other| {
            let standing = &self.standing[other];
            !standing.gone && standing.works_from <= self.now && self.ran(other) >= slice
        });
        // (wait + run) / run, the smallest first.
        candidates.sort_by(|&one, &other| {
            let facts =
                |job: usize| (i128::from(self.waited(job).ticks()), i128::from(self.ran(job).ticks()));
            let ((wait, run), (its_wait, its_run)) = (facts(one), facts(other));
            ((wait + run) * its_run).cmp(&((its_wait + its_run) * run))
        });
        let Some(victims) = enough(&candidates, |victims| self.fits_without(job, victims)) else { return };
        let pes = self.choose(job, &self.had(&victims), &victims).expect("there are enough");
        self.take_over(job, &victims, pes);
    }
}
