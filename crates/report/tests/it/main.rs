//! Small schedules, drawn: each rule of the policies as a picture that a reader can check.

mod chart;

mod conservative;
mod easy;
mod fcfs;
mod instants;
mod overrun;
