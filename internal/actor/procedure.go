package actor

// Procedure is an actor that is one task from beginning to end. Whoever embeds it sets Body
// before it is started; the error of Body is the actor's.
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
