package virtual

import "github.com/orbweaver/orbweaver/internal/actor"

// Process executes one actor: it passes each effect to Carry, and each reply to the actor. The fault simulation, the
// measurements and the unit tests all run actors in it; they differ in Now and Carry.
type Process struct {
	Actor actor.Actor
	Now   func() actor.Now
	Carry func(actor.Issue) // carries out an effect; later, the event that ends it calls Reply
	OnEnd func(error)       // called when the actor has ended, but not by Kill; nil: not called
	ended bool
}

// Start starts the actor.
func (p *Process) Start() { p.Take(p.Actor.Start(p.Now())) }

// Reply answers an effect. Nothing happens if the process has ended.
func (p *Process) Reply(id uint64, value any, err error) {
	if !p.ended {
		p.Take(p.Actor.Handle(p.Now(), actor.Reply{ID: id, Value: value, Err: err}))
	}
}

// Take carries out what the actor issued at an event, such as a signal, and checks whether the actor has ended.
func (p *Process) Take(issues []actor.Issue) {
	for _, is := range issues {
		if p.ended {
			return // Carry has killed it
		}
		p.Carry(is)
	}
	if ended, err := p.Actor.Ended(); ended && !p.ended {
		p.ended = true
		if p.OnEnd != nil {
			p.OnEnd(err)
		}
	}
}

// Kill ends the process between two effects, like a crash: nothing of it runs again.
func (p *Process) Kill() {
	p.ended = true
	p.Actor.Drop()
}

// Ended reports whether the actor has ended or was killed.
func (p *Process) Ended() bool { return p.ended }
