package box

import "time"

// pace is how fast a loop goes: running averages of how long a run takes, and
// how long a claim.
type pace struct{ run, trip time.Duration }

// ran notes how long a run took.
func (p *pace) ran(d time.Duration) { average(&p.run, d) }

// flown notes how long a claim took.
func (p *pace) flown(d time.Duration) { average(&p.trip, d) }

// stuck notes that runs take longer than d, and than was thought, though none has
// returned to say so.
func (p *pace) stuck(d time.Duration) { p.run = max(2*p.run, d) }

// ahead is how many messages so many slots get through during a claim, at most
// the given number.
func (p *pace) ahead(slots, most int) int {
	if p.run == 0 {
		return 0
	}
	return int(min(float64(slots)*float64(p.trip)/float64(p.run), float64(most)))
}

// average follows what is measured, a tenth at a time.
func average(mean *time.Duration, d time.Duration) {
	d = max(d, time.Microsecond)
	if *mean == 0 {
		*mean = d
		return
	}
	*mean += (d - *mean) / 10
}
