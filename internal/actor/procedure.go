package actor

// Procedure is an actor of one task. A type that embeds it sets Body
// before Start. The error of Body is the error of the actor.
type Procedure struct {
	Loop
	Body func(*Task) error
}

// Start begins the actor.
func (p *Procedure) Start(now Now) []Issue {
	p.Begin(now)
	p.Spawn(func(t *Task) error {
		p.End(p.Body(t))
		return nil
	})
	p.Turn()
	return p.Flush()
}

// Handle takes the reply to an effect.
func (p *Procedure) Handle(now Now, r Reply) []Issue {
	p.Deliver(now, r)
	p.Turn()
	return p.Flush()
}
