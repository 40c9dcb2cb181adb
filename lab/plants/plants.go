package main

// plants lists the bugs. Each is one that a crawler of this kind could have.
var plants = []plant{
	{
		Name: "early acknowledgement", Promise: "I5",
		Bug: "mail is acknowledged when the commit object is stored, before the head names it",
		Edits: []edit{{
			"internal/crawl/commit.go",
			"	if err := s.writeHead(t, head); err != nil {\n		return err\n	}\n",
			"	s.outbox.acknowledge(b.receipts)\n	b.receipts = nil\n	if err := s.writeHead(t, head); err != nil {\n		return err\n	}\n",
		}},
	},
	{
		Name: "no fence", Promise: "I4",
		Bug: "a head that another step wrote in the meantime is overwritten",
		Edits: []edit{{
			"internal/crawl/lease.go",
			"				return ErrLeaseLost\n			}\n			v, err = rec.Revision, nil\n",
			"				l.rev = rec.Revision\n				continue\n			}\n			v, err = rec.Revision, nil\n",
		}},
	},
	{
		Name: "lease outlived", Promise: "I4",
		Bug: "a request may last until the lease ends, without a margin for clock differences",
		Edits: []edit{{
			"internal/crawl/lease.go",
			"l.Now().Wall.Add(l.left() - l.cfg.Margin)", "l.Now().Wall.Add(l.left())",
		}},
	},
	{
		Name: "timeout taken for an end", Promise: "end",
		Bug: "requests have a deadline before their timeout, so slow answers count as aborted and are requested forever",
		Edits: []edit{
			{"internal/crawl/fetch.go", "s.cfg.Deadline/2, s.lease.deadline()", "s.cfg.Deadline/2, s.Now().Wall.Add(min(time.Minute, s.lease.left()-s.cfg.Margin))"},
			{"internal/crawl/commit.go", "h.Owner != \"\" && s.underWay > 0", "false"},
		},
	},
	{
		Name: "taken too early", Promise: "I3",
		Bug: "URLs of received slots are fetched when the receiving commit starts, not when it is durable",
		Edits: []edit{{
			"internal/crawl/commit.go",
			"	man.Moved = s.st.ter.holding.Moved()\n", "	s.st.f.Open(opened)\n	opened = nil\n	man.Moved = s.st.ter.holding.Moved()\n",
		}},
	},
	{
		Name: "given and kept", Promise: "I3",
		Bug: "a partition that gives slots keeps them too",
		Edits: []edit{{
			"internal/crawl/handover.go",
			"		ter.holding.Add(blobschema.Moved{Epoch: k.epoch, Slots: slots})\n", "",
		}},
	},
	{
		Name: "given while asked for", Promise: "I7, I9",
		Bug: "slots are given while requests for them are in flight",
		Edits: []edit{{
			"internal/frontier/move.go",
			"\t\tif p.InFlight() > 0 || p.loading {\n", "		if p.loading {\n",
		}},
	},
	{
		Name: "hand-over again", Promise: "I3",
		Bug: "a hand-over is taken twice: a comparison of epochs is off by one",
		Edits: []edit{
			{"internal/crawl/handover.go", "return m.Epoch <= ter.holding.Seen(id) })", "return m.Epoch < ter.holding.Seen(id) })"},
			{"internal/crawl/handover.go", "h.Epoch > ter.holding.Seen(id) && !already", "h.Epoch >= ter.holding.Seen(id) && !already"},
		},
	},
	{
		Name: "confirmed too early", Promise: "I3",
		Bug: "the coordinator confirms a move as soon as the receiver knows about it",
		Edits: []edit{{
			"internal/crawl/moves.go",
			"h.Epoch >= m.Epoch && (h.Awaits == 0 || h.Awaits > m.Epoch)", "h.Epoch >= m.Epoch",
		}},
	},
	{
		Name: "forgotten outbox", Promise: "I7",
		Bug: "a step that takes over does not send mail that was committed and perhaps not sent",
		Edits: []edit{{
			"internal/crawl/load.go",
			"		if seq > s.lease.head.Published {\n			if err := s.republish(t, seq); err != nil {\n				return err\n			}\n		}\n",
			"		_ = seq\n",
		}},
	},
	{
		Name: "forgotten unsent", Promise: "I7",
		Bug: "a manifest names its own outbox, but no earlier unsent one",
		Edits: []edit{{
			"internal/crawl/commit.go",
			"Unsent:  slices.Clone(s.outbox.unsent), BufferedFrom:", "Unsent: nil, BufferedFrom:",
		}},
	},
	{
		Name: "Bloom filter alone", Promise: "I7",
		Bug: "a URL counts as known if a filter of 65,536 bits and one hash says so",
		Edits: []edit{
			{
				"internal/frontier/frontier.go",
				"	delta     uint64    // number of the last delta\n", "	bloom     map[uint64]bool\n	delta     uint64\n",
			},
			{
				"internal/frontier/frontier.go",
				"\tif k == nil {\n\t\tk = f.schedule.Key(&p.slot.keys, q.Key)\n\t}\n\tsettler := k\n",
				`	bit := fp % (1 << 16)
	if at == absent && from == schedule.Outside && f.bloom[bit] {
		return Known
	}
	if f.bloom == nil {
		f.bloom = map[uint64]bool{}
	}
	f.bloom[bit] = true
	if k == nil {
		k = f.schedule.Key(&p.slot.keys, q.Key)
	}
	settler := k
`,
			},
		},
	},
	{
		Name: "sweep by its own", Promise: "I7", Rare: true,
		Bug: "a merged run is deleted although another partition received it",
		Edits: []edit{
			{
				"internal/crawl/sweep.go",
				"		for _, r := range man.Runs {\n			named[r.Object] = true\n		}\n		for _, g := range man.Given {\n			for _, r := range g.Runs {\n				named[r.Object] = true\n			}\n		}\n",
				"		for _, r := range man.Runs {\n			if strings.Contains(r.Object, fmt.Sprintf(\"/p%05d/\", man.Partition)) {\n				named[r.Object] = true\n			}\n		}\n",
			},
			{"internal/crawl/sweep.go", "	\"slices\"\n", "	\"slices\"\n	\"strings\"\n"},
		},
	},
	{
		Name: "sweep without hand-overs", Promise: "I7", Rare: true,
		Bug: "a merged run is deleted although an open hand-over names it",
		Edits: []edit{
			{
				"internal/crawl/sweep.go",
				"		for _, g := range man.Given {\n			for _, r := range g.Runs {\n				named[r.Object] = true\n			}\n		}\n", "",
			},
			{"internal/crawl/sweep.go", "sweepsUnnamed = 2 ", "sweepsUnnamed = 1 "},
		},
	},
	{
		Name: "forgotten floor", Promise: "I9",
		Bug:     "a receiver of slots ignores the pace after the giver's takeover from a crash",
		Escapes: "it needs a crash of all processes, a new partition, and a request within one pace of the last one before the crash",
		Edits: []edit{{
			"internal/crawl/commit.go",
			"floor = s.st.takeArrived(&man); floor.After(s.lease.head.Floor) {", "floor = s.st.takeArrived(&man); false {",
		}},
	},
	{
		Name: "no floor", Promise: "I9",
		Bug: "a step that takes over from a crash ignores the pace of hosts contacted just before",
		Edits: []edit{{
			"internal/crawl/lease.go",
			"		l.floor = head.Floor\n", "		l.floor = time.Time{}\n",
		}},
	},
	{
		Name: "numbers from one", Promise: "I7",
		Bug: "mail numbers restart at one after a takeover from a crash",
		Edits: []edit{{
			"internal/crawl/load.go",
			"	st.ter.given = slices.Clone(st.man.Given)\n", "	if s.lease.head.Crashes > 0 {\n		st.man.Sent = nil\n	}\n	st.ter.given = slices.Clone(st.man.Given)\n",
		}},
	},
	{
		Name: "stragglers dropped", Promise: "I7",
		Bug: "mail for a slot that was given away is dropped, not forwarded",
		Edits: []edit{{
			"internal/crawl/inbox.go",
			"			s.st.buffer(l) // bypasses the filter of sent links, which may know it from the slot of its name\n", "",
		}},
	},
	{
		Name: "stragglers filtered", Promise: "I7",
		Bug:     "forwarded mail passes the filter of links already sent",
		Escapes: "it needs a URL that is forwarded to a slot that has just moved, by a partition that had sent it before",
		Edits: []edit{{
			"internal/crawl/inbox.go",
			"			s.st.buffer(l) // bypasses the filter of sent links, which may know it from the slot of its name\n", "			s.st.deliver(l)\n",
		}},
	},
	{
		Name: "merge forgets", Promise: "I7", Rare: true,
		Bug:     "a merge omits slots that were received while it ran",
		Escapes: "it needs slots that leave and return during one merge; TestMergeLosesNoSlotThatComesBack finds it",
		Edits: []edit{{
			"internal/crawl/merge.go",
			"		if s.st.ter.takes == takes {", "		if takes >= 0 {",
		}},
	},
	{
		Name: "finished on the move", Promise: "I7",
		Bug: "the crawl counts as finished while slots are moving",
		Edits: []edit{{
			"internal/crawl/end.go",
			" && len(k.report.Map.Moving) == 0 && k.report.Map.Target == \"\"\n", "\n",
		}},
	},
	{
		Name: "record left out", Promise: "I7",
		Bug: "URLs that robots.txt refuses get no page record",
		Edits: []edit{{
			"internal/crawl/result.go",
			"		st.count(&p, false)\n		st.batch.add(&p)\n", "		st.count(&p, false)\n",
		}},
	},
	{
		Name: "grant dealt twice", Promise: "page limit",
		Bug: "after a crash the partition's page grant counts as free",
		Edits: []edit{{
			"internal/crawl/budget.go",
			"		for _, n := range g.Granted {\n			free -= n\n		}\n		b.exhausted",
			"		for p, n := range g.Granted {\n			if p != me || b.lease.head.Crashes == 0 {\n				free -= n\n			}\n		}\n		b.exhausted",
		}},
	},
	{
		Name: "seeds by the newest map", Promise: "I7",
		Bug:     "seeds are dealt by the current map, so a resent mail has the same number and other URLs",
		Escapes: "it needs a move of slots between two sends of one batch of seeds; TestSeedsKeepTheirMail finds it",
		Edits: []edit{
			{"internal/crawl/heads.go", "if k.first, err = partition.NewMap(c.Slots, c.Partitions); err != nil {", "if k.first, err = blobschema.ReadMap(t.Object, c, k.report.Map.Object); err != nil {"},
			{"internal/crawl/seeds.go", "p := pmap.Owner(l.Slot)", "p := pmap.Owner(l.Slot) % partition.ID(c.Partitions)"},
		},
	},
	{
		Name: "generation skipped", Promise: "I8",
		Bug: "a requested revisit keeps its generation",
		Edits: []edit{{
			"internal/frontier/frontier.go",
			"		q.Generation = p.marks[i].gen + 1\n", "		q.Generation = p.marks[i].gen\n		p.dropMark(i)\n",
		}},
	},
	{
		Name: "begun when taken", Promise: "I9",
		Bug: "the pace of a host with several connections counts from when a request was taken, not from when it began",
		Edits: []edit{{
			"internal/schedule/turn.go", "\t\t\tk.state, k.starting = busy, t.lane\n",
			"\t\t\tif k.state = busy; k.inFlight < k.allowed {\n\t\t\t\tk.state = idle\n\t\t\t\ts.queues.enqueue(k, now)\n\t\t\t}\n",
		}},
	},
	{
		Name: "halved while asked for", Promise: "I7, I8",
		Bug:   "a part of a slot is unloaded while requests for its URLs are in flight",
		Edits: []edit{{"internal/frontier/load.go", "\treturn p.InFlight() == 0 && p.Touched() <= f.committed &&", "	return p.Touched() <= f.committed &&"}},
	},
	{
		Name: "halves without what was appended", Promise: "I7",
		Bug:   "links found for a part that is not in memory are lost when the part is halved",
		Edits: []edit{{"internal/frontier/halve.go", "h.fresh, h.taken = of(fresh), of(taken)", "h.taken = of(taken)"}},
	},
	{
		Name: "style sheets ignored", Promise: "I7",
		Bug:   "what a style sheet needs is not requested",
		Edits: []edit{{"internal/crawl/discover.go", "sheet := o.Page.MIME == \"text/css\"", "sheet := false"}},
	},
	{
		Name: "requisite hides the page", Promise: "I7",
		Bug: "a link to a URL of another partition is not mailed if the URL was mailed as a requisite",
		Edits: []edit{{
			"internal/crawl/sent.go",
			"	case l.Flags.Requisite():\n		fp ^= 1 << 63\n", "",
		}},
	},
	{
		Name: "foreign requisite stays one", Promise: "I7",
		Bug:   "a requisite on a host that comes into scope later is not requested again as a page",
		Edits: []edit{{"internal/crawl/discover.go", "		st.keepForeign(t)\n", "		_ = t\n"}},
	},
	{
		Name: "limit before requisites", Promise: "I7",
		Bug:   "the crawl ends at its page limit while requisites of its pages are left",
		Edits: []edit{{"internal/crawl/end.go", " && !k.report.Crawl.Settings.AnyRequisites()", ""}},
	},
	{
		Name: "former version stays", Promise: "I11",
		Bug:   "documents of changed or deleted pages stay in the index",
		Edits: []edit{{"internal/index/batch.go", "			set.Add(doc)\n", "			_ = doc\n"}},
	},
	{
		Name: "gone, but not elsewhere", Promise: "I11",
		Bug:     "a page that is deleted after its slot moved stays in the index of the previous partition",
		Escapes: "it needs a page that is deleted after its slot has moved, in a crawl with an index; internal/index/again_test.go:TestMovedByAddress finds it",
		Edits: []edit{
			{"internal/index/batch.go", "m.Totals.Deleted++", "c.does = kept // it is here\n\t\t\t\tm.Totals.Deleted++"},
			{"internal/index/batch.go", "!c.stored && b.hasMoved(id.Slot) && len", "!c.stored && b.hasMoved(id.Slot) && c.does == kept && len"},
		},
	},
}
