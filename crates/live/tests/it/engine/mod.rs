//! The engine under a clock that is told, with hands that only note what they are to do.

mod capacity;

mod ahead;

mod suspended;

mod places;

mod turns;

mod after;

mod due;

mod queues;

mod refusals;

mod again;

mod life;
