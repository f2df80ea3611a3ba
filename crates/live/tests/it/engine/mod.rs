//! The engine under a clock that is told, with hands that only note what they are to do.

mod capacity;

mod ahead;

mod suspended;

mod again;

mod life;
