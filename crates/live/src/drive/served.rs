//! [`LiveDrive`] as the server uses it ([`Drive`]): submission, due answers, and the bytes of reads.
//!
//! Power cuts and other control operations are in `drive`.

use super::*;

impl Drive for LiveDrive {
    fn export(&self) -> &Export {
        &self.export
    }

    fn keeps_time(&self) -> bool {
        self.time.is_real()
    }

    fn life(&self) -> u64 {
        self.life
    }

    fn submit(&mut self, now_ns: u64, ticket: Ticket, request: Request, data: &[u8]) {
        let came_ns = self.time.at(now_ns);
        let asked = self.time.model_at(now_ns);
        if let Some(marker) = &mut self.marker {
            marker.served();
        }
        let whole = self.around(request);
        if let Some(recorder) = &mut self.recorder {
            recorder.push(now_ns, whole);
        }
        let kind = Kind::of(request.op);
        self.asked += 1;
        let id = self.asked;
        if let Some(log) = &mut self.log {
            log.ask(now_ns, id, request, data);
        }
        let mut flying = InFlight { id, kind, came_ns, asked, number: None, result: Ok(()), then: None };
        self.flying += 1;
        self.counts.asked(&request, self.flying);
        let slot = ticket as usize;
        if self.in_flight.len() <= slot {
            self.in_flight.resize(slot + 1, None);
        }
        if !self.powered {
            flying.result = Err(libc::EIO);
            self.in_flight[slot] = Some(flying);
            self.answer_at(came_ns, ticket);
            return;
        }
        let first = match request.op {
            Op::Write { .. } if whole != request => {
                flying.then = Some(whole);
                Request { op: Op::Read, ..whole }
            }
            _ => whole,
        };
        let completion = self.submit_to_model(asked, ticket, &first);
        if completion.as_ref().is_none_or(|completion| completion.status.is_ok()) {
            match self.apply(&request, data) {
                Ok(number) => flying.number = number,
                Err(errno) => flying.result = Err(errno),
            }
        }
        self.in_flight[slot] = Some(flying);
        self.begun(ticket, completion);
    }

    fn next_due(&self) -> Option<u64> {
        let answer = self.due.peek().map(|Reverse((release_ns, ..))| *release_ns);
        let step = self.model.next_done().map(|at| self.time.release(at));
        let due_ns = match (answer, step) {
            (Some(answer), Some(step)) => answer.min(step),
            (answer, step) => answer.or(step)?,
        };
        self.time.on_server(due_ns)
    }

    fn due(&mut self, now_ns: u64) -> Option<(Ticket, Result<(), i32>)> {
        if self.time.is_paused() {
            return None;
        }
        let drive_ns = self.time.at(now_ns);
        let (ticket, flying, release_ns) = loop {
            self.step(drive_ns);
            let Some(&Reverse((release_ns, _, ticket))) = self.due.peek() else {
                self.time.advance_to(self.later);
                return None;
            };
            if self.time.is_real() && release_ns > drive_ns {
                return None;
            }
            self.due.pop();
            let flying = self.in_flight[ticket as usize].as_mut().expect("a due request is in flight");
            match flying.then.take().filter(|_| flying.result.is_ok()) {
                Some(write) => self.submit_write(now_ns, ticket, &write),
                None => {
                    let flying = self.in_flight[ticket as usize].take().expect("checked above");
                    break (ticket, flying, release_ns);
                }
            }
        };
        self.flying -= 1;
        let now = self.time.model_at(now_ns);
        if let Some(number) = flying.number {
            self.pending.acknowledged(number, now);
        } else if flying.kind == Kind::Flush && flying.result.is_ok() && self.keeps_undo {
            self.pending.flushed(flying.asked);
        }
        let late_ns = self.time.is_real().then_some(drive_ns - release_ns);
        self.counts.answered(flying.kind, flying.result.is_ok(), drive_ns - flying.came_ns, late_ns);
        self.last_due = (flying.id, now_ns);
        if let Some(log) = &mut self.log {
            log.push(now_ns, &Event::End { id: flying.id, result: flying.result });
        }
        Some((ticket, flying.result))
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), i32> {
        self.contents.read(offset, into).map_err(|error| io_error(&error))?;
        if let Some(log) = &mut self.log {
            let (id, at_ns) = self.last_due;
            log.data(at_ns, id, offset, into);
        }
        Ok(())
    }

    fn run(&self, offset: u64, length: u64) -> Result<Run, i32> {
        self.contents.run(offset, length).map_err(|error| io_error(&error))
    }
}
